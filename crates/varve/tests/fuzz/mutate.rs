//! Makes an input out of a corpus: a seed of it with a few bytes changed, removed, repeated, or copied from another.

use varve::codec::hash::xxh3;

/// Numbers from a seed (splitmix64).
pub struct Random(u64);

/// Numbers that lengths and counts break at, as the low bytes of a little-endian word.
const EDGES: [u64; 8] = [0, 1, 0x7f, 0x80, 0xff, 0xffff, 0x7fff_ffff, u64::MAX];

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; 0 when that is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.bits() % bound.max(1) as u64) as usize
    }
}

/// The next input.
pub fn mutated(corpus: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut bytes = corpus[random.below(corpus.len())].clone();
    // One in sixteen is used unchanged: a target that refuses everything would prove nothing.
    for _ in 0..random.below(16).min(5) {
        change(&mut bytes, corpus, random);
    }
    bytes
}

fn change(bytes: &mut Vec<u8>, corpus: &[Vec<u8>], random: &mut Random) {
    // Most bytes that a decoder decides on lie near one of the ends.
    let len = bytes.len();
    let at = match random.below(4) {
        0 => random.below(len.min(64)),
        1 => len - 1.min(len) - random.below(len.min(64)),
        _ => random.below(len),
    };
    let count = random.below((len - at).min(40) + 1);
    match random.below(8) {
        0 if at < len => bytes[at] ^= 1 << random.below(8),
        1 if at < len => bytes[at] = random.bits() as u8,
        2 => {
            let edge = EDGES[random.below(EDGES.len())].to_le_bytes();
            let width = [1, 4, 8][random.below(3)];
            bytes.iter_mut().skip(at).zip(&edge[..width]).for_each(|(byte, edge)| *byte = *edge);
        }
        3 => bytes.truncate(at),
        4 => {
            bytes.drain(at..at + count);
        }
        5 => {
            let again = bytes[at..at + count].to_vec();
            bytes.splice(at..at, again);
        }
        6 => {
            let other = &corpus[random.below(corpus.len())];
            let from = random.below(other.len());
            let to = other.len().min(from + 1 + random.below(200));
            bytes.splice(at..(at + count), other[from..to].iter().copied());
        }
        _ => {
            let noise: Vec<u8> = (0..random.below(12)).map(|_| random.bits() as u8).collect();
            bytes.splice(at..at, noise);
        }
    }
}

/// Makes a hash over the bytes before `at` correct, so that the code behind the check is reached as well.
pub fn rehash(bytes: &mut [u8], from: usize, at: usize) {
    if from <= at && at + 8 <= bytes.len() {
        let hash = xxh3(&bytes[from..at], 0);
        bytes[at..at + 8].copy_from_slice(&hash.to_le_bytes());
    }
}
