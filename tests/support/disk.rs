//! A disk in memory that loses power, fails and lies, as real ones do.
//!
//! What was written is in the cache (`live`) at once, and on the disk (`durable`) after a sync.
//! When the power goes, each sector that was written since holds its old content or any of the
//! contents that it was given, and the file has its old length or any that it was given. After a
//! sync that failed, the cache shows what the disk may not have, and no later sync writes it.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use redb::StorageBackend;

use super::random::Random;

/// What goes wrong, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The number of the operation, counted from the last order to fail.
    pub(crate) at: u64,
    pub(crate) kind: Kind,
    /// Whether every later operation of this kind fails, too.
    pub(crate) lasting: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// EIO.
    Broken,
    /// ENOSPC.
    Full,
    /// A write of which only a first part is done.
    Short,
    /// The power is gone.
    Dark,
}

/// What a disk is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Length,
    Read,
    Write,
    SetLength,
    Sync,
}

impl Kind {
    /// Whether an operation can fail like this.
    pub(crate) fn strikes(self, operation: Operation) -> bool {
        use Operation::{Length, Read, Write};
        match self {
            Kind::Broken | Kind::Dark => true,
            Kind::Full => !matches!(operation, Length | Read),
            Kind::Short => operation == Write,
        }
    }

    fn error(self) -> io::Error {
        match self {
            Kind::Broken | Kind::Short => io::Error::other("the disk fails"),
            Kind::Full => io::Error::from(io::ErrorKind::StorageFull),
            Kind::Dark => io::Error::other("the power is gone"),
        }
    }
}

/// A disk with one file. A clone is the same disk.
#[derive(Clone, Debug)]
pub(crate) struct Disk(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    platter: Mutex<Platter>,
    gate: Mutex<Gate>,
    moved: Condvar,
}

/// Holds up whoever uses the disk, so that others can queue behind it.
#[derive(Debug, Default)]
struct Gate {
    shut: bool,
    waiting: bool,
}

#[derive(Debug)]
struct Platter {
    sector_bytes: usize,
    live: Vec<u8>,
    durable: Vec<u8>,
    /// The contents that each sector was given since the last sync.
    versions: BTreeMap<usize, Vec<Vec<u8>>>,
    /// The lengths that the file was given since the last sync.
    lengths: Vec<usize>,
    history: Vec<Operation>,
    fault: Option<Fault>,
    struck: bool,
    lies: bool,
    random: Random,
}

/// Far longer than anybody takes to begin a commit.
const GATE_WAIT: Duration = Duration::from_secs(20);
const HELD: &str = "nobody panics while holding the disk";

impl Disk {
    /// An empty disk that keeps or loses so many bytes at once.
    pub(crate) fn new(sector_bytes: usize) -> Disk {
        Disk::holding(Vec::new(), sector_bytes)
    }

    pub(crate) fn holding(bytes: Vec<u8>, sector_bytes: usize) -> Disk {
        let platter = Platter {
            sector_bytes,
            live: bytes.clone(),
            durable: bytes,
            versions: BTreeMap::new(),
            lengths: Vec::new(),
            history: Vec::new(),
            fault: None,
            struck: false,
            lies: false,
            random: Random::new(sector_bytes as u64),
        };
        let gate = Mutex::default();
        Disk(Arc::new(Parts { platter: platter.into(), gate, moved: Condvar::new() }))
    }

    fn platter(&self) -> MutexGuard<'_, Platter> {
        self.0.platter.lock().expect(HELD)
    }

    /// Orders a fault, counted from here.
    pub(crate) fn fail(&self, fault: Fault) {
        let mut platter = self.platter();
        platter.history.clear();
        platter.fault = Some(fault);
        platter.struck = false;
    }

    /// The power goes at operation `at`, counted from here.
    pub(crate) fn cut_power_at(&self, at: u64) {
        self.fail(Fault { at, kind: Kind::Dark, lasting: true });
    }

    /// From now on a sync does nothing, and says that it did.
    pub(crate) fn lie(&self) {
        self.platter().lies = true;
    }

    /// The disk works again.
    pub(crate) fn heal(&self) {
        self.platter().fault = None;
    }

    /// Whether the ordered fault has come.
    pub(crate) fn struck(&self) -> bool {
        self.platter().struck
    }

    /// The operations since the last order to fail.
    pub(crate) fn history(&self) -> Vec<Operation> {
        self.platter().history.clone()
    }

    /// The bytes as a program sees them.
    pub(crate) fn live(&self) -> Vec<u8> {
        self.platter().live.clone()
    }

    /// Flips a bit under whoever has the disk open.
    pub(crate) fn flip(&self, bit: usize) {
        self.platter().live[bit / 8] ^= 1 << (bit % 8);
    }

    /// The disk as it is found when the power is back.
    pub(crate) fn lose_power(&self, random: &mut Random) -> Disk {
        let platter = self.platter();
        let disk = Disk::holding(platter.survivors(random), platter.sector_bytes);
        disk.platter().lies = platter.lies;
        disk
    }

    /// Holds up the next operation, and waits until it is there.
    pub(crate) fn shut_gate(&self) {
        self.0.gate.lock().expect(HELD).shut = true;
    }

    /// Fails where nobody comes: then whoever was to write has not.
    pub(crate) fn wait_for_someone(&self) {
        let gate = self.0.gate.lock().expect(HELD);
        let waited = self.0.moved.wait_timeout_while(gate, GATE_WAIT, |gate| !gate.waiting);
        let come = waited.expect(HELD).0.waiting;
        if !come {
            self.open_gate();
        }
        assert!(come, "nobody uses the disk");
    }

    pub(crate) fn open_gate(&self) {
        *self.0.gate.lock().expect(HELD) = Gate::default();
        self.0.moved.notify_all();
    }

    fn pass_gate(&self) {
        let mut gate = self.0.gate.lock().expect(HELD);
        if gate.shut {
            gate.waiting = true;
            self.0.moved.notify_all();
            drop(self.0.moved.wait_while(gate, |gate| gate.shut).expect(HELD));
        }
    }

    /// Begins an operation: the platter, and what goes wrong, if anything does.
    fn begin(&self, operation: Operation) -> (MutexGuard<'_, Platter>, Option<Kind>) {
        self.pass_gate();
        let mut platter = self.platter();
        let number = platter.history.len() as u64;
        platter.history.push(operation);
        let fault = platter.fault.filter(|fault| {
            let now = number == fault.at || fault.lasting && number > fault.at;
            now && fault.kind.strikes(operation)
        });
        platter.struck |= fault.is_some();
        (platter, fault.map(|fault| fault.kind))
    }
}

impl Platter {
    fn sector(&self, number: usize) -> Vec<u8> {
        let start = number * self.sector_bytes;
        let mut sector =
            self.live[start..(start + self.sector_bytes).min(self.live.len())].to_vec();
        sector.resize(self.sector_bytes, 0);
        sector
    }

    fn write(&mut self, start: usize, data: &[u8]) {
        if data.is_empty() {
            return;
        }
        let end = start + data.len();
        self.live[start..end].copy_from_slice(data);
        for number in start / self.sector_bytes..=(end - 1) / self.sector_bytes {
            let sector = self.sector(number);
            self.versions.entry(number).or_default().push(sector);
        }
    }

    fn set_length(&mut self, length: usize) {
        let cut = length..self.live.len();
        self.live.resize(length, 0);
        self.lengths.push(length);
        if !cut.is_empty() {
            // Should the file grow again, what was cut off is zero.
            for number in length.div_ceil(self.sector_bytes)..cut.end.div_ceil(self.sector_bytes) {
                self.versions.entry(number).or_default().push(vec![0; self.sector_bytes]);
            }
        }
    }

    /// What is on the disk if the power goes now.
    fn survivors(&self, random: &mut Random) -> Vec<u8> {
        let mut image = self.durable.clone();
        if !self.lengths.is_empty() && random.chance(70) {
            let last = self.lengths.len() - 1;
            let place = if random.chance(70) { last } else { random.place(last + 1) };
            image.resize(self.lengths[place], 0);
        }
        let kept = random.pick(&[0, 10, 50, 90, 100]);
        for (number, versions) in &self.versions {
            if random.chance(kept) {
                let last = versions.len() - 1;
                let place = if random.chance(80) { last } else { random.place(last + 1) };
                put(&mut image, number * self.sector_bytes, &versions[place]);
            }
        }
        image
    }

    fn sync(&mut self) {
        self.durable.resize(self.live.len(), 0);
        for number in self.versions.keys() {
            let start = number * self.sector_bytes;
            let end = (start + self.sector_bytes).min(self.live.len());
            if start < end {
                self.durable[start..end].copy_from_slice(&self.live[start..end]);
            }
        }
        self.versions.clear();
        self.lengths.clear();
    }

    /// Some of it may be on the disk; the cache takes all of it for written.
    fn fail_sync(&mut self) {
        let mut random = self.random.clone();
        self.durable = self.survivors(&mut random);
        self.random = random;
        self.versions.clear();
        self.lengths.clear();
    }
}

/// Puts a sector in its place, as far as the file reaches.
fn put(image: &mut [u8], start: usize, sector: &[u8]) {
    if start < image.len() {
        let end = (start + sector.len()).min(image.len());
        image[start..end].copy_from_slice(&sector[..end - start]);
    }
}

fn small(number: u64) -> usize {
    usize::try_from(number).expect("a disk of a test is small")
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        match self.begin(Operation::Length) {
            (platter, None) => Ok(platter.live.len() as u64),
            (_, Some(kind)) => Err(kind.error()),
        }
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let (platter, fault) = self.begin(Operation::Read);
        if let Some(kind) = fault {
            return Err(kind.error());
        }
        let found = platter.live.get(small(offset)..small(offset) + out.len());
        out.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let (mut platter, fault) = self.begin(Operation::SetLength);
        match fault {
            Some(kind) => Err(kind.error()),
            None => {
                platter.set_length(small(length));
                Ok(())
            }
        }
    }

    fn sync_data(&self) -> io::Result<()> {
        let (mut platter, fault) = self.begin(Operation::Sync);
        match fault {
            Some(Kind::Dark) => return Err(Kind::Dark.error()),
            Some(kind) => {
                platter.fail_sync();
                return Err(kind.error());
            }
            None if platter.lies => {}
            None => platter.sync(),
        }
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let (mut platter, fault) = self.begin(Operation::Write);
        let done = match fault {
            None => data.len(),
            Some(Kind::Short) => platter.random.place(data.len()),
            Some(_) => 0,
        };
        platter.write(small(offset), &data[..done]);
        fault.map_or(Ok(()), |kind| Err(kind.error()))
    }
}
