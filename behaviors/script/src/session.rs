//! One firing of a script: what it may see, and what it has proposed so far.

use std::cell::RefCell;

use behaviors::{Firing, Metadata, Proposal, Proposals, ReactError, Reply, Word};
use log::Change;
use serde_json::{Map, Value as Json};
use smol_str::SmolStr;
use starlark::PrintHandler;
use starlark::any::ProvidesStaticType;
use starlark::codemap::FileSpan;
use starlark::eval::Evaluator;
use starlark::values::Value;
use starlark::values::none::NoneType;

use crate::change::{ChangeValue, Draft, Target, resolved};
use crate::convert::described;
use crate::source::Source;

/// One firing of a script.
#[derive(ProvidesStaticType)]
pub(crate) struct Session<'f> {
    pub(crate) firing: &'f Firing<'f>,
    proposals: RefCell<Proposals<'f>>,
    drafts: RefCell<Vec<Draft>>,
}

impl<'f> Session<'f> {
    pub(crate) fn new(metadata: &'f Metadata, firing: &'f Firing<'f>) -> Self {
        let proposals = RefCell::new(Proposals::new(metadata, firing));
        Session { firing, proposals, drafts: RefCell::new(Vec::new()) }
    }

    /// The firing that an evaluation belongs to.
    ///
    /// # Errors
    /// It belongs to none: the script is being loaded.
    pub(crate) fn of<'a, 'e>(
        eval: &Evaluator<'_, 'a, 'e>,
        what: &str,
    ) -> anyhow::Result<&'a Session<'e>> {
        let session = eval.extra.and_then(|extra| extra.downcast_ref::<Session<'e>>());
        session.ok_or_else(|| {
            anyhow::anyhow!("{what} belongs into a reaction; a file that is loaded only declares")
        })
    }

    /// Keeps a change until it is emitted.
    pub(crate) fn draft(
        &self,
        change: Change,
        targets: Vec<Target>,
        span: Option<FileSpan>,
    ) -> ChangeValue {
        let mut drafts = self.drafts.borrow_mut();
        drafts.push(Draft { change, targets, span, place: None });
        ChangeValue { index: drafts.len() - 1 }
    }

    /// Proposes an event with the changes that it carries.
    pub(crate) fn emit(
        &self,
        kind: &str,
        payload: Map<String, Json>,
        changes: &[Value<'_>],
        key: Option<&str>,
    ) -> anyhow::Result<()> {
        let mut drafts = self.drafts.borrow_mut();
        let mut proposals = self.proposals.borrow_mut();
        let number = proposals.count();
        let mut carried = Vec::with_capacity(changes.len());
        for (place, value) in changes.iter().enumerate() {
            let Some(change) = ChangeValue::from_value(*value) else {
                anyhow::bail!(
                    "what follows the payload is changes, such as set(x, name = value), found {}; \
                     a list of changes is given as *changes",
                    described(*value)
                );
            };
            if drafts[change.index].place.replace((number, place)).is_some() {
                anyhow::bail!(
                    "change {} of `{kind}` is in an event already; make another",
                    place + 1
                );
            }
            carried.push(change.index);
        }
        let named = |(place, index): (usize, &usize)| {
            let change = resolved(&drafts, *index);
            change.map_err(|what| anyhow::anyhow!("change {} of `{kind}`: {what}", place + 1))
        };
        let changes = carried.iter().enumerate().map(named).collect::<anyhow::Result<_>>()?;
        let key = key.map(SmolStr::from);
        let word = Word::Event;
        let proposal = Proposal { kind: kind.into(), payload, changes, key, word };
        push(&mut proposals, proposal)
    }

    /// Asks for an effect; what is returned stands for its node, which is in its event already.
    pub(crate) fn request(
        &self,
        effect: &str,
        args: Map<String, Json>,
        key: Option<&str>,
        span: Option<FileSpan>,
    ) -> anyhow::Result<ChangeValue> {
        let mut proposals = self.proposals.borrow_mut();
        let number = proposals.count();
        let key = key.map(SmolStr::from);
        let (payload, changes, word) = (args, Vec::new(), Word::Request);
        push(&mut proposals, Proposal { kind: effect.into(), payload, changes, key, word })?;
        let properties = Map::new();
        let change = Change::Create { id: None, type_name: "_Effect".into(), properties };
        let mut drafts = self.drafts.borrow_mut();
        drafts.push(Draft { change, targets: Vec::new(), span, place: Some((number, 0)) });
        Ok(ChangeValue { index: drafts.len() - 1 })
    }

    /// Says a word that has no name and no changes of its own.
    pub(crate) fn say(&self, word: Word, payload: Map<String, Json>) -> anyhow::Result<NoneType> {
        let (kind, changes, key) = (word.as_str().into(), Vec::new(), None);
        let proposal = Proposal { kind, payload, changes, key, word };
        push(&mut self.proposals.borrow_mut(), proposal)?;
        Ok(NoneType)
    }

    /// What the reaction proposed.
    ///
    /// # Errors
    /// A change was made that no event carries.
    pub(crate) fn finish(self, source: &Source) -> Result<Reply, ReactError> {
        let drafts = self.drafts.into_inner();
        if let Some(lost) = drafts.iter().find(|draft| draft.place.is_none()) {
            let what = "this change is in no event, so it would be lost; \
                        give it to emit(kind, payload, change)"
                .to_owned();
            return Err(match &lost.span {
                Some(span) => source.error_in(span, what),
                None => ReactError::new(what),
            });
        }
        self.proposals.into_inner().finish()
    }
}

fn push(proposals: &mut Proposals<'_>, proposal: Proposal) -> anyhow::Result<()> {
    match proposals.push(proposal) {
        Ok(_) => Ok(()),
        Err(error) => Err(anyhow::anyhow!(error.message)),
    }
}

impl PrintHandler for Session<'_> {
    fn println(&self, text: &str) -> starlark::Result<()> {
        self.proposals.borrow_mut().print(text);
        Ok(())
    }
}
