//! Changes as stored: written once in canonical form, read in place.

use smol_str::SmolStr;

use super::{Change, WriteOp};
use crate::error::EventError;
use crate::value::{MapRef, ValueWriter, check_map, check_str, insert_length, read_section};
use crate::value::{read_str, read_varint, take_str, write_str, write_varint};

const CREATE: u8 = 1;
const CREATE_AS: u8 = 2;
const ENSURE: u8 = 3;
const LINK: u8 = 4;
const LINK_AS: u8 = 5;
const ENSURE_LINK: u8 = 6;
const SET: u8 = 7;
const ADD: u8 = 8;
const APPEND: u8 = 9;
/// Added to SET, ADD or APPEND when a version is expected.
const IF_VERSION: u8 = 16;
const UNSET: u8 = 10;
const REMOVE: u8 = 11;

/// One stored change, read in place. See `Change` for what each does.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "the fields are those of `Change`")]
pub enum ChangeRef<'a> {
    /// A new node.
    Create { id: Option<&'a str>, type_name: &'a str, properties: MapRef<'a> },
    /// A node, created if it is absent.
    Ensure { id: &'a str, type_name: &'a str, properties: MapRef<'a> },
    /// A new edge.
    Link {
        id: Option<&'a str>,
        type_name: &'a str,
        from: &'a str,
        to: &'a str,
        properties: MapRef<'a>,
    },
    /// An edge named by its type and ends, created if it is absent.
    EnsureLink { type_name: &'a str, from: &'a str, to: &'a str, properties: MapRef<'a> },
    /// Properties written, added to or appended to.
    Write { op: WriteOp, id: &'a str, properties: MapRef<'a>, if_version: Option<u64> },
    /// Properties dropped.
    Unset { id: &'a str, names: NamesRef<'a> },
    /// An element removed.
    Remove { id: &'a str },
}

/// The names of an `unset`, read in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamesRef<'a>(&'a [u8]);

impl<'a> NamesRef<'a> {
    /// The names in order.
    pub fn iter(self) -> impl Iterator<Item = &'a str> {
        let mut rest = self.0;
        std::iter::from_fn(move || if rest.is_empty() { None } else { Some(take_str(&mut rest)) })
    }
}

/// The stored changes of one event, read in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ChangesRef<'a>(&'a [u8]);

impl<'a> ChangesRef<'a> {
    /// Reads changes that `check_changes` accepted.
    pub(crate) fn from_checked(bytes: &'a [u8]) -> Self {
        ChangesRef(bytes)
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// The changes in order.
    pub fn iter(self) -> impl Iterator<Item = ChangeRef<'a>> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            Some(take_change(&mut rest).expect("the bytes were checked when they were read"))
        })
    }
}

impl ChangeRef<'_> {
    /// The change, owned.
    #[must_use]
    pub fn to_change(self) -> Change {
        match self {
            ChangeRef::Create { id, type_name, properties } => Change::Create {
                id: id.map(Into::into),
                type_name: type_name.into(),
                properties: properties.to_json(),
            },
            ChangeRef::Ensure { id, type_name, properties } => Change::Ensure {
                id: id.into(),
                type_name: type_name.into(),
                properties: properties.to_json(),
            },
            ChangeRef::Link { id, type_name, from, to, properties } => Change::Link {
                id: id.map(Into::into),
                type_name: type_name.into(),
                from: from.into(),
                to: to.into(),
                properties: properties.to_json(),
            },
            ChangeRef::EnsureLink { type_name, from, to, properties } => Change::EnsureLink {
                type_name: type_name.into(),
                from: from.into(),
                to: to.into(),
                properties: properties.to_json(),
            },
            ChangeRef::Write { op, id, properties, if_version } => {
                Change::Write { op, id: id.into(), properties: properties.to_json(), if_version }
            }
            ChangeRef::Unset { id, names } => {
                Change::Unset { id: id.into(), names: names.iter().map(Into::into).collect() }
            }
            ChangeRef::Remove { id } => Change::Remove { id: id.into() },
        }
    }
}

/// Reads one change.
fn take_change<'a>(rest: &mut &'a [u8]) -> Result<ChangeRef<'a>, &'static str> {
    let (&tag, tail) = rest.split_first().ok_or("a change without an operation")?;
    *rest = tail;
    Ok(match tag {
        CREATE | CREATE_AS => ChangeRef::Create {
            id: if tag == CREATE_AS { Some(read_str(rest)?) } else { None },
            type_name: read_str(rest)?,
            properties: take_map(rest)?,
        },
        ENSURE => ChangeRef::Ensure {
            id: read_str(rest)?,
            type_name: read_str(rest)?,
            properties: take_map(rest)?,
        },
        LINK | LINK_AS => ChangeRef::Link {
            id: if tag == LINK_AS { Some(read_str(rest)?) } else { None },
            type_name: read_str(rest)?,
            from: read_str(rest)?,
            to: read_str(rest)?,
            properties: take_map(rest)?,
        },
        ENSURE_LINK => ChangeRef::EnsureLink {
            type_name: read_str(rest)?,
            from: read_str(rest)?,
            to: read_str(rest)?,
            properties: take_map(rest)?,
        },
        UNSET => ChangeRef::Unset { id: read_str(rest)?, names: NamesRef(read_section(rest)?) },
        REMOVE => ChangeRef::Remove { id: read_str(rest)? },
        _ => {
            let op = match tag & !IF_VERSION {
                SET => WriteOp::Set,
                ADD => WriteOp::Add,
                APPEND => WriteOp::Append,
                _ => return Err("a change of an unknown operation"),
            };
            let if_version = if tag & IF_VERSION == 0 { None } else { Some(read_varint(rest)?) };
            ChangeRef::Write { op, if_version, id: read_str(rest)?, properties: take_map(rest)? }
        }
    })
}

fn take_map<'a>(rest: &mut &'a [u8]) -> Result<MapRef<'a>, &'static str> {
    read_section(rest).map(MapRef::from_checked)
}

/// Checks that `bytes` are changes in their canonical form: what `take_change` reads.
pub(crate) fn check_changes(mut bytes: &[u8]) -> Result<(), &'static str> {
    while let Some((&tag, rest)) = bytes.split_first() {
        bytes = rest;
        let texts = match tag {
            CREATE | UNSET | REMOVE => 1,
            CREATE_AS | ENSURE => 2,
            LINK | ENSURE_LINK => 3,
            LINK_AS => 4,
            _ => match tag & !IF_VERSION {
                SET | ADD | APPEND => 1,
                _ => return Err("a change of an unknown operation"),
            },
        };
        if tag & IF_VERSION != 0 {
            read_varint(&mut bytes)?;
        }
        for _ in 0..texts {
            check_str(&mut bytes)?;
        }
        match tag {
            REMOVE => {}
            UNSET => {
                let mut names = read_section(&mut bytes)?;
                while !names.is_empty() {
                    check_str(&mut names)?;
                }
            }
            _ => check_map(read_section(&mut bytes)?)?,
        }
    }
    Ok(())
}

/// Writes changes in their canonical form.
pub(crate) fn write_changes(
    writer: &mut ValueWriter,
    changes: &[Change],
) -> Result<(), EventError> {
    for (index, change) in changes.iter().enumerate() {
        write_change(writer, change, index)?;
    }
    Ok(())
}

fn write_change(writer: &mut ValueWriter, change: &Change, index: usize) -> Result<(), EventError> {
    let bytes = &mut writer.bytes;
    let properties = match change {
        Change::Create { id: None, type_name, properties } => {
            open(bytes, CREATE, &[type_name]);
            properties
        }
        Change::Create { id: Some(id), type_name, properties } => {
            open(bytes, CREATE_AS, &[id, type_name]);
            properties
        }
        Change::Ensure { id, type_name, properties } => {
            open(bytes, ENSURE, &[id, type_name]);
            properties
        }
        Change::Link { id: None, type_name, from, to, properties } => {
            open(bytes, LINK, &[type_name, from, to]);
            properties
        }
        Change::Link { id: Some(id), type_name, from, to, properties } => {
            open(bytes, LINK_AS, &[id, type_name, from, to]);
            properties
        }
        Change::EnsureLink { type_name, from, to, properties } => {
            open(bytes, ENSURE_LINK, &[type_name, from, to]);
            properties
        }
        Change::Write { op, id, properties, if_version } => {
            let tag = match op {
                WriteOp::Set => SET,
                WriteOp::Add => ADD,
                WriteOp::Append => APPEND,
            };
            if let Some(version) = if_version {
                bytes.push(tag + IF_VERSION);
                write_varint(bytes, *version);
                write_str(bytes, id);
            } else {
                open(bytes, tag, &[id]);
            }
            properties
        }
        Change::Unset { id, names } => {
            open(bytes, UNSET, &[id]);
            let start = bytes.len();
            names.iter().for_each(|name| write_str(bytes, name));
            insert_length(bytes, start);
            return Ok(());
        }
        Change::Remove { id } => {
            open(bytes, REMOVE, &[id]);
            return Ok(());
        }
    };
    let start = writer.bytes.len();
    if !properties.is_empty() {
        writer.entries_of(properties, format_args!("changes[{index}].properties"))?;
    }
    insert_length(&mut writer.bytes, start);
    Ok(())
}

fn open(bytes: &mut Vec<u8>, tag: u8, texts: &[&SmolStr]) {
    bytes.push(tag);
    texts.iter().for_each(|text| write_str(bytes, text));
}
