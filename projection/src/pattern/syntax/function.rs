//! The functions that an expression may call.

/// A function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    /// The number without its sign.
    Abs,
    /// The least whole number that is not below.
    Ceil,
    /// The first argument that is not null.
    Coalesce,
    /// Where an edge goes to.
    EndNode,
    /// The greatest whole number that is not above.
    Floor,
    /// The first item of a list.
    Head,
    /// The id of an element.
    Id,
    /// The names of the properties of an element, or of the fields of a map.
    Keys,
    /// The type of a node, as a list.
    Labels,
    /// The last item of a list.
    Last,
    /// The first characters of a text.
    Left,
    /// The number of edges of a path.
    Length,
    /// A text without the white space before it.
    LTrim,
    /// The nodes of a path.
    Nodes,
    /// The properties of an element as a map.
    Properties,
    /// The whole numbers from one to another, by steps.
    Range,
    /// The edges of a path.
    Relationships,
    /// A text with one part put for another.
    Replace,
    /// A text or a list from its end.
    Reverse,
    /// The last characters of a text.
    Right,
    /// The nearest whole number.
    Round,
    /// A text without the white space behind it.
    RTrim,
    /// -1, 0 or 1.
    Sign,
    /// The number of characters of a text, or of items of a list.
    Size,
    /// The parts of a text between a separator.
    Split,
    /// The square root.
    Sqrt,
    /// Where an edge comes from.
    StartNode,
    /// A part of a text, by its place and length.
    Substring,
    /// A list without its first item.
    Tail,
    /// A truth of a text or a whole number.
    ToBoolean,
    /// A number of a text.
    ToFloat,
    /// A whole number of a text or another number.
    ToInteger,
    /// A text in lower case.
    ToLower,
    /// A text of a number or a truth.
    ToString,
    /// A text in upper case.
    ToUpper,
    /// A text without the white space around it.
    Trim,
    /// The type of an element.
    Type,
}

/// How many arguments a function takes: at least, at most.
type Arity = (usize, usize);

const ONE: Arity = (1, 1);
const TWO: Arity = (2, 2);
const THREE: Arity = (3, 3);
const TWO_OR_THREE: Arity = (2, 3);
const ANY: Arity = (1, usize::MAX);

impl Function {
    /// Every function with its name and its number of arguments, in the order of the names.
    pub(crate) const ALL: [(&'static str, Function, Arity); 37] = [
        ("abs", Function::Abs, ONE),
        ("ceil", Function::Ceil, ONE),
        ("coalesce", Function::Coalesce, ANY),
        ("endNode", Function::EndNode, ONE),
        ("floor", Function::Floor, ONE),
        ("head", Function::Head, ONE),
        ("id", Function::Id, ONE),
        ("keys", Function::Keys, ONE),
        ("labels", Function::Labels, ONE),
        ("last", Function::Last, ONE),
        ("left", Function::Left, TWO),
        ("length", Function::Length, ONE),
        ("ltrim", Function::LTrim, ONE),
        ("nodes", Function::Nodes, ONE),
        ("properties", Function::Properties, ONE),
        ("range", Function::Range, TWO_OR_THREE),
        ("relationships", Function::Relationships, ONE),
        ("replace", Function::Replace, THREE),
        ("reverse", Function::Reverse, ONE),
        ("right", Function::Right, TWO),
        ("round", Function::Round, ONE),
        ("rtrim", Function::RTrim, ONE),
        ("sign", Function::Sign, ONE),
        ("size", Function::Size, ONE),
        ("split", Function::Split, TWO),
        ("sqrt", Function::Sqrt, ONE),
        ("startNode", Function::StartNode, ONE),
        ("substring", Function::Substring, TWO_OR_THREE),
        ("tail", Function::Tail, ONE),
        ("toBoolean", Function::ToBoolean, ONE),
        ("toFloat", Function::ToFloat, ONE),
        ("toInteger", Function::ToInteger, ONE),
        ("toLower", Function::ToLower, ONE),
        ("toString", Function::ToString, ONE),
        ("toUpper", Function::ToUpper, ONE),
        ("trim", Function::Trim, ONE),
        ("type", Function::Type, ONE),
    ];

    /// The function with a name, in any case.
    pub(crate) fn named(name: &str) -> Option<Function> {
        let found = Function::ALL.iter().find(|(known, ..)| known.eq_ignore_ascii_case(name));
        found.map(|(_, function, _)| *function)
    }

    fn entry(self) -> &'static (&'static str, Function, Arity) {
        let found = Function::ALL.iter().find(|(_, function, _)| *function == self);
        found.expect("every function is listed")
    }

    /// Its name as written.
    pub(crate) fn name(self) -> &'static str {
        self.entry().0
    }

    /// How many arguments it takes: at least, at most.
    pub(crate) fn arity(self) -> (usize, usize) {
        self.entry().2
    }

    /// Whether it asks an element, or a list of them, for what never changes.
    pub(crate) fn is_of_identity(self) -> bool {
        matches!(self, Function::Id | Function::Type | Function::Labels | Function::Size)
    }

    /// Whether it leads from one element to others, whose changes a trigger would miss.
    pub(crate) fn leads_on(self) -> bool {
        matches!(self, Function::StartNode | Function::EndNode | Function::Nodes)
    }
}
