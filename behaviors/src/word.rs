//! The words that a behavior has besides events: asking for an effect, ending one, a guard's
//! verdicts, and giving less to what follows. The runtime turns each into an event of its own
//! kinds.

/// What a proposal is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Word {
    /// An event of the behavior's own.
    #[default]
    Event,
    /// An effect is asked for: `kind` names it, `payload` is its arguments.
    Request,
    /// A guard lets the request pass that it was shown.
    Allow,
    /// A guard refuses it; the payload has the `reason`.
    Deny,
    /// A guard puts other arguments in place of those it was shown: the payload.
    Rewrite,
    /// What follows from the rest of this firing may do no more than the payload says: `effects`,
    /// a list, and `budget`, an object.
    Narrow,
    /// Effects are to end, those of the payload's scope: `effect`, `firing` or `goal`; all of the
    /// behavior's own goal if it names none.
    Cancel,
}

impl Word {
    /// How it is called in scripts and messages.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Word::Event => "emit",
            Word::Request => "request",
            Word::Allow => "allow",
            Word::Deny => "deny",
            Word::Rewrite => "rewrite",
            Word::Narrow => "narrow",
            Word::Cancel => "cancel",
        }
    }

    /// The word called so.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Word> {
        let asks = [Word::Event, Word::Request, Word::Narrow, Word::Cancel];
        let mut all = asks.into_iter().chain([Word::Allow, Word::Deny, Word::Rewrite]);
        all.find(|word| word.as_str() == name)
    }

    /// Whether it is a guard's verdict.
    #[must_use]
    pub fn is_verdict(self) -> bool {
        matches!(self, Word::Allow | Word::Deny | Word::Rewrite)
    }
}
