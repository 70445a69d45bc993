//! The specification of a job, and its result, as bytes that travel between workers.
//!
//! Both live for one session and are never stored, so they have no version and no checksum. Decoding is bounded anyway.
//!
//! ```text
//! specification  image | order | fields | u64 bytes of image | u64 bytes of order     (both 0 without a memtable)
//! ```
//! The image of a memtable is nearly all of the bytes. It comes first, so it does not have to be copied, neither in nor
//! out.

use std::rc::Rc;

use zeroize::Zeroize;

use crate::codec::cipher::Keyring;
use crate::codec::reader::{Reader, Truncated};
use crate::codec::varint::put_u64;
use crate::error::{Error, Result};
use crate::table::TableMeta;
use crate::types::Sequence;

/// The kind of work that a job does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobKind {
    /// A memtable becomes a table of level 0.
    Flush,
    /// Tables are merged into the next level.
    Compaction,
}

/// The input of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobInput {
    /// A frozen memtable: its image, and the order of its entries.
    Memtable {
        /// The bytes of its WAL segment.
        image: Vec<u8>,
        /// `Memtable::freeze_order` of it.
        order: Vec<u8>,
    },
    /// Runs of tables: each run is sorted and disjoint, newer runs come first.
    Runs(Vec<Vec<Rc<TableMeta>>>),
}

/// Everything a job needs to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobSpec {
    /// The store's identity, which seeds checksums, and its keys. They come from a [`Keyring::fork`].
    pub keyring: Keyring,
    /// Level of the outputs.
    pub level: u8,
    /// Older versions can only lie in `below`: a tombstone can be dropped if no table there may contain its key.
    pub bottom: bool,
    /// Compress output blocks where that saves enough.
    pub compress: bool,
    /// Data block size in bytes.
    pub block_bytes: u32,
    /// Entries between restart points.
    pub restart_interval: u32,
    /// Filter bits per key.
    pub bits_per_key: u32,
    /// Outputs are cut at this size in bytes.
    pub table_bytes: u64,
    /// Number of the first output table; the others follow.
    pub first_output: u64,
    /// Number of table numbers that are reserved.
    pub outputs_max: u64,
    /// The job ends between two keys once it has read this many bytes of keys and values, about.
    pub raw_bytes_max: u64,
    /// The job ends before this key: tables from there on were left out.
    pub end: Option<Vec<u8>>,
    /// The time, in milliseconds since 1970: entries that expired by then are tombstones.
    pub now_ms: u64,
    /// Tombstones up to this sequence may be dropped. It is the sequence of the oldest open snapshot.
    pub tombstones_until: Sequence,
    /// The tables of each level below the outputs that touch their key range, each level by key.
    pub below: Vec<Vec<Rc<TableMeta>>>,
    /// Runs newer than the inputs, newest first: input entries that they hide are dropped. Their own entries are not written.
    pub above: Vec<Vec<Rc<TableMeta>>>,
    /// The input.
    pub input: JobInput,
}

/// The result of a job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobResult {
    /// The finished tables, in key order.
    pub tables: Vec<TableMeta>,
    /// The first key that was not merged, when the job merged only a key range.
    pub until: Option<Vec<u8>>,
    /// For each input that reaches over `until`: its number, and how many of its bytes lie before `until`.
    pub skipped: Vec<(u64, u64)>,
    /// Bytes read from input files or the memtable.
    pub bytes_read: u64,
    /// Bytes written to output files.
    pub bytes_written: u64,
    /// Entries and range tombstones that were not kept.
    pub entries_dropped: u64,
    /// Entries that had expired: they became tombstones or were dropped.
    pub entries_expired: u64,
}

impl JobSpec {
    /// Flush or compaction.
    #[must_use]
    pub fn kind(&self) -> JobKind {
        match self.input {
            JobInput::Memtable { .. } => JobKind::Flush,
            JobInput::Runs(_) => JobKind::Compaction,
        }
    }

    /// Encodes this specification. The bytes begin with a memtable's image, in the same allocation.
    #[must_use]
    pub fn encode(mut self) -> Vec<u8> {
        let (mut out, lengths) = match &mut self.input {
            JobInput::Memtable { image, order } => {
                let mut out = std::mem::take(image);
                let lengths = (out.len(), order.len());
                out.extend_from_slice(order);
                (out, lengths)
            }
            JobInput::Runs(_) => (Vec::new(), (0, 0)),
        };
        out.extend_from_slice(&[self.level, u8::from(self.bottom), u8::from(self.compress)]);
        for number in [
            u64::from(self.block_bytes),
            u64::from(self.restart_interval),
            u64::from(self.bits_per_key),
            self.table_bytes,
            self.first_output,
            self.outputs_max,
            self.raw_bytes_max,
            self.now_ms,
            self.tombstones_until,
        ] {
            put_u64(&mut out, number);
        }
        let end = self.end.as_deref();
        out.push(u8::from(end.is_some()));
        put_u64(&mut out, end.unwrap_or_default().len() as u64);
        out.extend_from_slice(end.unwrap_or_default());
        encode_runs(&self.below, &mut out);
        encode_runs(&self.above, &mut out);
        match &self.input {
            JobInput::Memtable { .. } => out.push(0),
            JobInput::Runs(runs) => {
                out.push(1);
                encode_runs(runs, &mut out);
            }
        }
        // Last, and into room that is there: bytes that move leave copies behind.
        out.reserve(self.keyring.encoded_len() + 2 * size_of::<u64>());
        self.keyring.encode(&mut out);
        out.extend_from_slice(&(lengths.0 as u64).to_le_bytes());
        out.extend_from_slice(&(lengths.1 as u64).to_le_bytes());
        out
    }

    /// Reads a specification. A memtable's image stays in the allocation of `bytes`; the rest, which has the data keys, is overwritten.
    ///
    /// # Errors
    /// `Error::InvalidArgument` when the bytes are not valid.
    pub fn decode(mut bytes: Vec<u8>) -> Result<Self> {
        let parsed = Self::parse(&bytes);
        let image_bytes = parsed.as_ref().map_or(0, |(_, image_bytes)| *image_bytes);
        bytes[image_bytes..].zeroize();
        let (mut spec, _) =
            parsed.map_err(|Truncated| Error::InvalidArgument("These bytes do not describe a job."))?;
        if let JobInput::Memtable { image, .. } = &mut spec.input {
            bytes.truncate(image_bytes);
            *image = bytes;
        }
        Ok(spec)
    }

    /// The specification without a memtable's image, and the length of that image.
    fn parse(bytes: &[u8]) -> Result<(Self, usize), Truncated> {
        let (rest, &lengths) = bytes.split_last_chunk::<16>().ok_or(Truncated)?;
        let mut lengths = Reader::new(&lengths);
        let mut length =
            || -> Result<usize, Truncated> { usize::try_from(lengths.u64()?).map_err(|_| Truncated) };
        let (image_bytes, order_bytes) = (length()?, length()?);
        let (_, rest) = rest.split_at_checked(image_bytes).ok_or(Truncated)?;
        let (order, fields) = rest.split_at_checked(order_bytes).ok_or(Truncated)?;
        let reader = &mut Reader::new(fields);
        let (level, bottom, compress) = (reader.u8()?, reader.u8()? != 0, reader.u8()? != 0);
        let mut small =
            || -> Result<u32, Truncated> { u32::try_from(reader.varint()?).map_err(|_| Truncated) };
        let (block_bytes, restart_interval, bits_per_key) = (small()?, small()?, small()?);
        let (table_bytes, first_output, outputs_max) = (reader.varint()?, reader.varint()?, reader.varint()?);
        let (raw_bytes_max, now_ms, tombstones_until) =
            (reader.varint()?, reader.varint()?, reader.varint()?);
        let (has_end, end) = (reader.u8()? != 0, reader.prefixed()?.to_vec());
        let (below, above) = (decode_runs(reader)?, decode_runs(reader)?);
        let input = if reader.u8()? == 0 {
            JobInput::Memtable { image: Vec::new(), order: order.to_vec() }
        } else {
            JobInput::Runs(decode_runs(reader)?)
        };
        let keyring = Keyring::decode(reader)?;
        let spec = Self {
            keyring,
            level,
            bottom,
            compress,
            block_bytes,
            restart_interval,
            bits_per_key,
            table_bytes,
            first_output,
            outputs_max,
            raw_bytes_max,
            end: has_end.then_some(end),
            now_ms,
            tombstones_until,
            below,
            above,
            input,
        };
        Ok((spec, image_bytes))
    }
}

impl JobResult {
    /// The bytes of this result.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for number in [self.bytes_read, self.bytes_written, self.entries_dropped, self.entries_expired] {
            put_u64(&mut out, number);
        }
        put_u64(&mut out, self.tables.len() as u64);
        for table in &self.tables {
            table.encode(&mut out);
        }
        put_u64(&mut out, self.skipped.len() as u64);
        for (table, bytes) in &self.skipped {
            put_u64(&mut out, *table);
            put_u64(&mut out, *bytes);
        }
        // This field is last and takes all remaining bytes, so no length is needed.
        if let Some(until) = &self.until {
            out.push(1);
            out.extend_from_slice(until);
        }
        out
    }

    /// Reads a result.
    ///
    /// # Errors
    /// `Error::InvalidArgument` when the bytes are not valid.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut reader = Reader::new(bytes);
        let mut parse = || -> Result<Self, Truncated> {
            let mut result = Self {
                bytes_read: reader.varint()?,
                bytes_written: reader.varint()?,
                entries_dropped: reader.varint()?,
                entries_expired: reader.varint()?,
                ..Self::default()
            };
            for _ in 0..reader.varint()? {
                result.tables.push(TableMeta::decode(&mut reader)?);
            }
            for _ in 0..reader.varint()? {
                result.skipped.push((reader.varint()?, reader.varint()?));
            }
            if !reader.is_empty() {
                reader.u8()?;
                result.until = Some(reader.bytes(reader.remaining())?.to_vec());
            }
            Ok(result)
        };
        parse().map_err(|Truncated| Error::InvalidArgument("These bytes are not the result of a job."))
    }
}

fn encode_runs(runs: &[Vec<Rc<TableMeta>>], out: &mut Vec<u8>) {
    put_u64(out, runs.len() as u64);
    for run in runs {
        put_u64(out, run.len() as u64);
        for table in run {
            table.encode(out);
        }
    }
}

fn decode_runs(reader: &mut Reader<'_>) -> Result<Vec<Vec<Rc<TableMeta>>>, Truncated> {
    let mut runs = Vec::new();
    for _ in 0..reader.varint()? {
        let mut run = Vec::new();
        for _ in 0..reader.varint()? {
            run.push(Rc::new(TableMeta::decode(reader)?));
        }
        runs.push(run);
    }
    Ok(runs)
}
