//! The entries in a batch of a scan, read from the bytes that JavaScript gets.

use varve::scan::Batch;

/// The entries of a batch that wants keys and values, in its order.
pub fn entries(batch: &Batch) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut bytes = Vec::new();
    batch.encode(0, &mut bytes);
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes")) as usize;
    let (count, keys_bytes) = (word(4), word(8));
    let keys = 16 + 8 * count;
    let values = keys + keys_bytes.next_multiple_of(4);
    let part = |blob: usize, ends: usize, at: usize| {
        let start = if at == 0 { 0 } else { word(ends + 4 * (at - 1)) };
        bytes[blob + start..blob + word(ends + 4 * at)].to_vec()
    };
    (0..count).map(|at| (part(keys, 16, at), part(values, 16 + 4 * count, at))).collect()
}
