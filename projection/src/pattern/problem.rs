//! What kind of mistake an error is about, by the names that openCypher gives them.

use std::fmt;

/// The class of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorClass {
    /// The text itself is wrong.
    Syntax,
    /// A value is of a type that does not fit.
    Type,
    /// A value is of the right type, but out of range.
    Argument,
}

impl fmt::Display for ErrorClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ErrorClass::Syntax => "SyntaxError",
            ErrorClass::Type => "TypeError",
            ErrorClass::Argument => "ArgumentError",
        })
    }
}

/// Something that a query could not compute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Its class, by the names of openCypher.
    pub class: ErrorClass,
    /// What it is about, by the names of openCypher.
    pub problem: Problem,
    /// What could not be computed, and why.
    pub message: String,
}

/// Lists the problems once, for the type and for their names.
macro_rules! problems {
    ($($(#[doc = $doc:literal])* $name:ident,)*) => {
        /// What an error is about.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Problem {
            $($(#[doc = $doc])* $name,)*
        }

        impl fmt::Display for Problem {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Problem::$name => stringify!($name),)*
                })
            }
        }
    };
}

problems! {
    /// A mixed expression in which it is open what is grouped by.
    AmbiguousAggregationExpression,
    /// Two columns of one name.
    ColumnNameConflict,
    /// A number beyond what a float can be.
    FloatingPointOverflow,
    /// A whole number beyond 64 bits.
    IntegerOverflow,
    /// An aggregate where there are no rows to aggregate.
    InvalidAggregation,
    /// A value of a type that does not fit.
    InvalidArgumentType,
    /// A value that cannot be converted.
    InvalidArgumentValue,
    /// Clauses that do not go together.
    InvalidClauseComposition,
    /// A number that is written wrongly.
    InvalidNumberLiteral,
    /// A call with too few or too many arguments.
    InvalidNumberOfArguments,
    /// A parameter where none can stand.
    InvalidParameterUse,
    /// An edge that is written wrongly.
    InvalidRelationshipPattern,
    /// A character that looks like another.
    InvalidUnicodeCharacter,
    /// An escape that stands for no character.
    InvalidUnicodeLiteral,
    /// A map asked for something that is no name.
    MapElementAccessByNonString,
    /// A number below zero where rows are counted.
    NegativeIntegerArgument,
    /// An aggregate inside another.
    NestedAggregation,
    /// An expression passed on without a name.
    NoExpressionAlias,
    /// `*` where nothing is named.
    NoVariablesInScope,
    /// A value that must be the same in all rows, and may not be.
    NonConstantExpression,
    /// A number out of range.
    NumberOutOfRange,
    /// One edge twice in a pattern.
    RelationshipUniquenessViolation,
    /// A name that nothing has.
    UndefinedVariable,
    /// A token that does not fit where it stands.
    UnexpectedSyntax,
    /// A function that does not exist.
    UnknownFunction,
    /// A name given to a second thing.
    VariableAlreadyBound,
    /// A name of one kind of thing, used as another.
    VariableTypeConflict,
}
