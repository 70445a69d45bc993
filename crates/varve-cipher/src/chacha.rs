//! ChaCha20 with four blocks at once in vectors of 128 bits, behind RustCrypto's traits: its own crate has none for wasm.
//!
//! A vector has one word of the state for each of the four blocks. So a round moves no words between vectors, and the words are put in
//! order after the rounds.
//! The block of the Poly1305 key and the three behind it are computed together: seeking within the four computes nothing.
//!
//! The cipher: RFC 8439, section 2.3. The layout: Goll and Gueron, "Vectorization on ChaCha Stream Cipher" (2014).

use chacha20::cipher::array::Array;
use chacha20::cipher::consts::{U12, U32};
use chacha20::cipher::{
    InOutBuf, IvSizeUser, KeyIvInit, KeySizeUser, OverflowError, SeekNum, StreamCipher, StreamCipherError,
    StreamCipherSeek,
};
use wide::bytemuck::{bytes_of, cast};
use wide::u32x4;
use zeroize::Zeroize;

const BLOCK_BYTES: usize = 64;
/// Blocks that are computed together.
const BLOCKS: usize = 4;
const BYTES: usize = BLOCKS * BLOCK_BYTES;
const CONSTANTS: [u32; 4] = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574];

/// The keystream of a key and a nonce, from position 0.
pub(crate) struct ChaCha {
    /// Without the number of the block.
    state: [u32; 16],
    /// The bytes that `four` holds begin at this multiple of `BYTES`; at none before the first use.
    four_at: Option<u64>,
    /// As words, because zeros are written over them one by one when this is dropped.
    four: [u64; BYTES / 8],
    position: u64,
}

impl ChaCha {
    /// Takes `length` bytes of the stream: calls `piece` with each part of them and where it lies in these bytes.
    fn take(&mut self, length: usize, mut piece: impl FnMut(core::ops::Range<usize>, &[u8])) {
        let mut done = 0;
        while done < length {
            let at = (self.position % BYTES as u64) as usize;
            let start = self.position - at as u64;
            if self.four_at != Some(start) {
                self.four = cast(four_blocks(&self.state, (start / BLOCK_BYTES as u64) as u32));
                self.four_at = Some(start);
            }
            let now = (BYTES - at).min(length - done);
            piece(done..done + now, &bytes_of(&self.four)[at..at + now]);
            done += now;
            self.position += now as u64;
        }
    }
}

/// Four blocks from this number on.
fn four_blocks(state: &[u32; 16], number: u32) -> [u8; BYTES] {
    let mut start: [u32x4; 16] = core::array::from_fn(|word| u32x4::splat(state[word]));
    start[12] = u32x4::splat(number) + u32x4::new([0, 1, 2, 3]);
    let mut words = start;
    for _ in 0..10 {
        quarter(&mut words, 0, 4, 8, 12);
        quarter(&mut words, 1, 5, 9, 13);
        quarter(&mut words, 2, 6, 10, 14);
        quarter(&mut words, 3, 7, 11, 15);
        quarter(&mut words, 0, 5, 10, 15);
        quarter(&mut words, 1, 6, 11, 12);
        quarter(&mut words, 2, 7, 8, 13);
        quarter(&mut words, 3, 4, 9, 14);
    }
    let mut bytes = [0; BYTES];
    for (word, (sum, start)) in words.into_iter().zip(start).enumerate() {
        for (block, value) in (sum + start).to_array().into_iter().enumerate() {
            let at = block * BLOCK_BYTES + word * 4;
            bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
    }
    bytes
}

#[inline(always)]
fn quarter(words: &mut [u32x4; 16], a: usize, b: usize, c: usize, d: usize) {
    words[a] += words[b];
    words[d] = turn::<16>(words[d] ^ words[a]);
    words[c] += words[d];
    words[b] = turn::<12>(words[b] ^ words[c]);
    words[a] += words[b];
    words[d] = turn::<8>(words[d] ^ words[a]);
    words[c] += words[d];
    words[b] = turn::<7>(words[b] ^ words[c]);
}

#[inline(always)]
fn turn<const BITS: u32>(words: u32x4) -> u32x4 {
    words << BITS | words >> (32 - BITS)
}

/// Eight bytes at a time.
fn xor(bytes: &mut [u8], stream: &[u8]) {
    let ((words, rest), (stream_words, stream_rest)) = (bytes.as_chunks_mut::<8>(), stream.as_chunks::<8>());
    for (word, with) in words.iter_mut().zip(stream_words) {
        *word = (u64::from_ne_bytes(*word) ^ u64::from_ne_bytes(*with)).to_ne_bytes();
    }
    for (byte, with) in rest.iter_mut().zip(stream_rest) {
        *byte ^= with;
    }
}

impl KeySizeUser for ChaCha {
    type KeySize = U32;
}

impl IvSizeUser for ChaCha {
    type IvSize = U12;
}

impl KeyIvInit for ChaCha {
    fn new(key: &Array<u8, U32>, nonce: &Array<u8, U12>) -> Self {
        let mut state = [0; 16];
        state[..4].copy_from_slice(&CONSTANTS);
        for (word, bytes) in state[4..12].iter_mut().zip(key.as_chunks::<4>().0) {
            *word = u32::from_le_bytes(*bytes);
        }
        for (word, bytes) in state[13..].iter_mut().zip(nonce.as_chunks::<4>().0) {
            *word = u32::from_le_bytes(*bytes);
        }
        Self { state, four_at: None, four: [0; BYTES / 8], position: 0 }
    }
}

impl StreamCipher for ChaCha {
    fn check_remaining(&self, length: usize) -> Result<(), StreamCipherError> {
        let end = self.position.checked_add(length as u64).ok_or(StreamCipherError)?;
        if end <= BLOCK_BYTES as u64 * u64::from(u32::MAX) { Ok(()) } else { Err(StreamCipherError) }
    }

    fn unchecked_apply_keystream_inout(&mut self, bytes: InOutBuf<'_, '_, u8>) {
        let bytes = bytes.into_out_with_copied_in();
        self.take(bytes.len(), |piece, stream| xor(&mut bytes[piece], stream));
    }

    fn unchecked_write_keystream(&mut self, bytes: &mut [u8]) {
        self.take(bytes.len(), |piece, stream| bytes[piece].copy_from_slice(stream));
    }
}

impl StreamCipherSeek for ChaCha {
    fn try_current_pos<T: SeekNum>(&self) -> Result<T, OverflowError> {
        // In blocks of one byte.
        T::from_block_byte(self.position, 1, 1)
    }

    fn try_seek<T: SeekNum>(&mut self, position: T) -> Result<(), StreamCipherError> {
        (self.position, _) = position.into_block_byte(1).map_err(|OverflowError| StreamCipherError)?;
        Ok(())
    }
}

impl Drop for ChaCha {
    fn drop(&mut self) {
        self.state.zeroize();
        self.four.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chacha20::ChaCha20;

    /// Streams of both ciphers after the same calls: seeks to, and lengths of, all alignments, up to the last block.
    #[test]
    fn the_stream_is_that_of_rustcrypto() {
        let mut random = 1_u64;
        let mut next = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 33) % below
        };
        for case in 0..2000 {
            let key = Array::from_fn(|_| next(256) as u8);
            let nonce = Array::from_fn(|_| next(256) as u8);
            let (mut ours, mut theirs) = (ChaCha::new(&key, &nonce), ChaCha20::new(&key, &nonce));
            for step in 0..5 {
                if next(2) == 0 {
                    let position = if next(4) == 0 { (1 << 38) - 1500 + next(100) } else { next(1000) };
                    ours.seek(position);
                    theirs.seek(position);
                }
                assert_eq!(ours.current_pos::<u64>(), theirs.current_pos::<u64>());
                let mut bytes: Vec<u8> = (0..next(700)).map(|_| next(256) as u8).collect();
                let mut same = bytes.clone();
                let found = ours.try_apply_keystream(&mut bytes).is_ok();
                assert_eq!(found, theirs.try_apply_keystream(&mut same).is_ok(), "case {case}, step {step}");
                assert_eq!(bytes, same, "case {case}, step {step}");
            }
        }
    }
}
