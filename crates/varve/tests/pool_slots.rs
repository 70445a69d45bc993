//! Which slot contains which file: claims survive reopening, the newest claim counts, recycled slots start large, and
//! lent, late, foreign and quarantined slots are never mistaken for files.

use varve::error::Error;
use varve::storage::{MemorySlots, SLOT_HEADER_BYTES, SlotError, SlotHeader, SlotPool, Slots, Storage};
use varve::types::{FileName, StoreId};

use crate::same_as::same_as;

const STORE: StoreId = [3; 16];

/// A pool that belongs to a store.
fn pool(slots: u32) -> SlotPool<MemorySlots> {
    let mut pool = SlotPool::open(MemorySlots::new(slots)).expect("opens");
    pool.adopt(STORE);
    pool
}

fn read<D: Slots>(pool: &SlotPool<D>, file: FileName, offset: u64, len: usize) -> Result<Vec<u8>, Error> {
    let mut bytes = vec![0; len];
    pool.read(file, offset, &mut bytes)?;
    Ok(bytes)
}

fn names<D: Slots>(pool: &SlotPool<D>) -> Vec<FileName> {
    let mut names: Vec<FileName> = pool.list().into_iter().map(|(file, _)| file).collect();
    names.sort_unstable();
    names
}

fn file_of(header: &SlotHeader) -> Option<FileName> {
    header.claims.first().map(|claim| claim.file)
}

/// The header page for a claim.
fn claim(slot: u32, store: StoreId, file: FileName, generation: u64) -> Vec<u8> {
    SlotHeader::whole(store, file, generation).encode(slot)
}

#[test]
fn files_and_their_bytes_are_found_again() {
    let mut pool = pool(6);
    for (file, byte) in [(FileName::table(7), 1), (FileName::wal(7), 2), (FileName::manifest(0), 3)] {
        pool.create(file, 0).expect("created");
        pool.write(file, 0, &[byte; 100]).expect("written");
        pool.write(file, 100, &[byte + 10; 100]).expect("written");
        pool.sync(file).expect("synced");
    }
    let pool = SlotPool::open(pool.into_device()).expect("opens");
    assert_eq!(names(&pool), [FileName::manifest(0), FileName::wal(7), FileName::table(7)]);
    assert_eq!(read(&pool, FileName::wal(7), 99, 2), Ok(vec![2, 12]));
    assert_eq!(read(&pool, FileName::table(7), 100, 100), Ok(vec![11; 100]));
    assert_eq!(
        pool.list().iter().find(|(file, _)| *file == FileName::table(7)).map(|(_, len)| *len),
        Some(200)
    );
    let short = Err(Error::corrupt(FileName::table(7), 101, "short read"));
    assert_eq!(read(&pool, FileName::table(7), 101, 100), short);
    assert!(read(&pool, FileName::table(8), 0, 1).is_err());
    assert!(read(&pool, FileName::table(7), u64::MAX, 1).is_err());
}

#[test]
fn spare_room_beyond_a_sixteenth_is_given_back_when_tables_go() {
    let mut pool = pool(8);
    pool.set_spare(100_000);
    let tables: Vec<_> = (1..=4).map(FileName::table).collect();
    for table in &tables {
        pool.create(*table, 60_000).expect("created");
        pool.write(*table, 0, &[1; 60_000]).expect("written");
    }
    let full = pool.bytes_on_disk();
    pool.set_room(Some(1 << 30));
    pool.delete(tables[0]).expect("deleted");
    assert_eq!(pool.bytes_on_disk(), full, "one table is not too much to keep");
    pool.delete(tables[1]).expect("deleted");
    let slot = SLOT_HEADER_BYTES + 60_000;
    assert_eq!(pool.bytes_on_disk(), full - 60_000);
    assert_eq!(pool.free_bytes(), Some((1 << 30) + 2 * slot), "room that was released can be used again");
    pool.create(tables[0], 60_000).expect("created");
    pool.write(tables[0], 0, &[2; 60_000]).expect("written");
    assert_eq!(read(&pool, tables[0], 59_999, 1), Ok(vec![2]));
    assert_eq!(read(&pool, tables[2], 59_999, 1), Ok(vec![1]));
}

#[test]
fn of_two_slots_that_claim_one_file_the_higher_generation_holds_it() {
    for (generations, winner) in [([5, 9], 1), ([9, 5], 0)] {
        let mut slots = MemorySlots::new(2);
        for (slot, generation) in (0u32..).zip(generations) {
            let bytes = slots.slot_mut(slot).expect("exists");
            *bytes = claim(slot, STORE, FileName::table(1), generation);
            bytes.push(generation as u8);
        }
        let mut pool = SlotPool::open(slots).expect("opens");
        assert_eq!(pool.slot_of(FileName::table(1)), Some(winner));
        assert_eq!(read(&pool, FileName::table(1), 0, 1), Ok(vec![9]));
        // The other is free, and a file that goes there counts as newer than both.
        pool.create(FileName::table(2), 0).expect("a slot is free");
        let header =
            SlotHeader::decode(pool.device().slot(1 - winner), 1 - winner).expect("known").expect("valid");
        assert_eq!((file_of(&header), header.generation), (Some(FileName::table(2)), 10));
    }
}

#[test]
fn a_deleted_file_frees_its_slot_and_may_come_back_only_until_the_slot_is_reused() {
    let mut pool = pool(1);
    pool.create(FileName::table(1), 0).expect("created");
    assert_eq!(pool.lend(FileName::table(2), 0), Ok(None));
    pool.delete(FileName::table(1)).expect("exists");
    assert!(names(&pool).is_empty() && pool.delete(FileName::table(1)).is_err());
    let mut again = SlotPool::open(pool.device().clone()).expect("opens");
    assert_eq!(names(&again), [FileName::table(1)], "an orphan for the engine to delete");
    again.delete(FileName::table(1)).expect("exists");
    again.create(FileName::table(2), 0).expect("created");
    let again = SlotPool::open(again.into_device()).expect("opens");
    assert_eq!(names(&again), [FileName::table(2)]);
}

#[test]
fn deleted_files_do_not_come_back_once_their_claims_are_dropped() {
    let mut pool = pool(2);
    let [shares, stays, alone] = [1, 2, 3].map(FileName::wal);
    for file in [shares, stays] {
        pool.create(file, 4096).unwrap();
    }
    pool.create(alone, 4 << 20).unwrap();
    for file in [shares, alone] {
        pool.delete(file).unwrap();
    }
    pool.drop_claims();
    let kept = names(&SlotPool::open(pool.into_device()).unwrap());
    assert!(kept.contains(&stays) && !kept.contains(&shares) && !kept.contains(&alone), "{kept:?}");
}

#[test]
fn a_file_takes_the_slot_that_it_fits_best() {
    let mut pool = pool(4);
    for (id, kib) in [(1, 10), (2, 300), (3, 50), (4, 200)] {
        pool.create(FileName::table(id), 0).expect("created");
        pool.write(FileName::table(id), 0, &vec![1; kib << 10]).expect("written");
    }
    // The first slots of 256 KiB and more to be freed are kept in reserve; these are shorter.
    for id in [1, 3, 4] {
        pool.delete(FileName::table(id)).expect("exists");
    }
    pool.create(FileName::table(5), 40 << 10).expect("created");
    assert_eq!(pool.slot_of(FileName::table(5)), Some(2), "50 KiB fit 40");
    pool.create(FileName::wal(1), 190 << 10).expect("created");
    assert_eq!(pool.slot_of(FileName::wal(1)), Some(3), "200 KiB fit 190");
    let before = pool.bytes_on_disk();
    pool.write(FileName::wal(1), 0, &vec![2; 190 << 10]).expect("written");
    assert_eq!(pool.bytes_on_disk(), before, "a recycled slot does not grow");
    pool.create(FileName::table(6), 1 << 20).expect("created");
    assert_eq!(pool.slot_of(FileName::table(6)), Some(0), "the largest that is left");
}

/// The story: segments of 256 KiB took the longest free slot, one of 2 MiB, and small tables any that they fitted in. The
/// next long table then had to make a short slot longer. Step by step every slot became as long as the longest file, and
/// a store that only overwrote its keys took twenty times the room of its data.
#[test]
fn short_files_leave_long_slots_to_long_files() {
    let mut pool = pool(5);
    pool.set_room(Some(4 << 20));
    for (id, kib) in [(1, 300), (2, 300), (3, 2000), (4, 240), (5, 40)] {
        pool.create(FileName::table(id), 0).expect("created");
        pool.write(FileName::table(id), 0, &vec![1; kib << 10]).expect("written");
    }
    // The first two are kept in reserve.
    for id in 1..=5 {
        pool.delete(FileName::table(id)).expect("exists");
    }
    pool.create(FileName::wal(1), 230 << 10).expect("created");
    assert_eq!(pool.slot_of(FileName::wal(1)), Some(3), "not in 2000 KiB");
    pool.create(FileName::table(6), 250 << 10).expect("created");
    assert_eq!(pool.slot_of(FileName::table(6)), Some(4), "rather made longer than in 2000 KiB");

    // Without room to make a slot longer, the long one will do.
    let used = pool.device().bytes();
    pool.device_mut().set_limit(Some(used));
    assert_eq!(pool.write(FileName::table(6), 0, &vec![2; 250 << 10]), Err(Error::StorageFull));
    pool.delete(FileName::table(6)).expect("exists");
    pool.create(FileName::table(7), 250 << 10).expect("created");
    assert_eq!(pool.slot_of(FileName::table(7)), Some(2));
    pool.write(FileName::table(7), 0, &vec![2; 250 << 10]).expect("written");
}

/// The story: a host that runs all jobs itself (IndexedDB, Deno KV) lends whole slots to them and keeps its own room for their outputs. The
/// log segment of a flush on a full Deno KV was reserved for tables here, where no job of that host looks. It kept its megabyte, the next
/// flush found no room, and no write succeeded any more.
#[test]
fn a_host_that_keeps_the_room_for_tables_has_none_set_aside() {
    for is_hosts in [false, true] {
        let mut pool = pool(5);
        if is_hosts {
            pool.leave_table_room();
        }
        pool.ensure_reserve().expect("there is room");
        for (id, kib) in [(1, 300), (2, 300)] {
            pool.create(FileName::wal(id), 0).expect("created");
            pool.write(FileName::wal(id), 0, &vec![1; kib << 10]).expect("written");
            pool.delete(FileName::wal(id)).expect("exists");
        }
        assert!(pool.reserve_intact());
        pool.shrink(0).expect("cut");
        let left = pool.bytes_on_disk() >> 10;
        assert_eq!(
            left < 300,
            is_hosts,
            "{left} KiB: what is set aside for a segment, and for a table where this pool keeps that"
        );
    }
}

/// The story: of two log segments in one slot of a full Deno KV the first was flushed. Its megabyte stayed between the page and the second,
/// which found no room for its own flush, for ever.
#[test]
fn such_a_host_gets_zeros_where_a_file_was_before_others() {
    let mut pool = pool(5);
    pool.leave_table_room();
    for id in 1..=2 {
        pool.create(FileName::wal(id), 0).expect("created");
        pool.write(FileName::wal(id), 0, &vec![1; 100 << 10]).expect("written");
    }
    let slot = pool.slot_of(FileName::wal(1)).expect("there");
    assert_eq!(pool.slot_of(FileName::wal(2)), Some(slot), "behind a short one");
    let before = pool.place_of(FileName::wal(1)).expect("there");
    pool.delete(FileName::wal(1)).expect("exists");
    let mut read = vec![9; 100 << 10];
    pool.device().read(slot, before.start, &mut read).expect("read");
    assert!(read.iter().all(|byte| *byte == 0));
    let mut other = vec![0; 100 << 10];
    pool.read(FileName::wal(2), 0, &mut other).expect("read");
    assert!(other.iter().all(|byte| *byte == 1));
}

/// The story: the announced length of a table is more than its final length. So a table took the slot of a WAL segment, twice its own
/// length, and the next segment made another slot as long. A store of ten million pairs took twice the size of its data.
#[test]
fn tables_leave_the_slots_of_wal_segments_alone_while_others_will_do() {
    let mut pool = pool(6);
    for (id, file) in
        [FileName::table(1), FileName::table(2), FileName::wal(1), FileName::table(3)].into_iter().enumerate()
    {
        pool.create(file, 0).expect("created");
        pool.write(file, 0, &vec![1; (300 + id) << 10]).expect("written");
    }
    // The first two are kept in reserve.
    for file in [FileName::table(1), FileName::table(2), FileName::wal(1), FileName::table(3)] {
        pool.delete(file).expect("exists");
    }
    pool.create(FileName::table(4), 250 << 10).expect("created");
    assert_eq!(pool.slot_of(FileName::table(4)), Some(3), "where a table was");
    pool.create(FileName::table(5), 250 << 10).expect("created");
    assert_eq!(pool.slot_of(FileName::table(5)), Some(4), "in an empty slot");
    pool.create(FileName::wal(2), 300 << 10).expect("created");
    assert_eq!(pool.slot_of(FileName::wal(2)), Some(2), "where a segment was");
    pool.create(FileName::table(6), 250 << 10).expect("created");
    pool.delete(FileName::wal(2)).expect("exists");
    pool.create(FileName::table(7), 250 << 10).expect("created");
    assert_eq!(pool.slot_of(FileName::table(7)), Some(2), "no other is left");
}

#[test]
fn growth_is_zeros_written_ahead_and_a_record_of_any_size_fits() {
    let mut pool = pool(2);
    pool.create(FileName::wal(1), 0).expect("created");
    let slot = pool.slot_of(FileName::wal(1)).expect("exists");
    let mut sizes = Vec::new();
    for at in 0..300 {
        pool.write(FileName::wal(1), at * 3000, &[7; 3000]).expect("written");
        sizes.push(pool.device().size(slot) >> 10);
    }
    sizes.dedup();
    assert_eq!(sizes, [64, 128, 256, 512, 768, 1024]);
    assert_eq!(read(&pool, FileName::wal(1), 899_999, 2), Ok(vec![7, 0]));
    pool.write(FileName::wal(1), 900_000, &vec![8; 3 << 20]).expect("written");
    assert_eq!(read(&pool, FileName::wal(1), 900_000 + (3 << 20) - 1, 2), Ok(vec![8, 0]));
    // Tables are written once, at their length.
    pool.create(FileName::table(1), 0).expect("created");
    pool.write(FileName::table(1), 0, &[1; 999]).expect("written");
    assert_eq!(
        pool.device().size(pool.slot_of(FileName::table(1)).expect("exists")),
        SLOT_HEADER_BYTES + 999
    );
    let gap = pool.write(FileName::table(1), 1000, &[1]);
    assert!(matches!(gap, Err(Error::InvalidArgument(_))), "{gap:?}");
}

#[test]
fn files_of_another_store_are_not_listed_and_their_slots_are_reused() {
    let mut slots = MemorySlots::new(3);
    *slots.slot_mut(0).expect("exists") = claim(0, [1; 16], FileName::wal(4), 50);
    *slots.slot_mut(1).expect("exists") = claim(1, STORE, FileName::manifest(0), 20);
    *slots.slot_mut(2).expect("exists") = claim(2, STORE, FileName::wal(1), 21);
    let mut pool = SlotPool::open(slots).expect("opens");
    assert_eq!(names(&pool), [FileName::manifest(0), FileName::wal(1)]);
    pool.adopt(STORE);
    assert_eq!((names(&pool).len(), pool.free_slots()), (2, 1));
    pool.create(FileName::wal(4), 0).expect("the foreign slot is free");
    pool.adopt([8; 16]);
    assert_eq!((names(&pool).len(), pool.free_slots()), (0, 3));
    pool.create(FileName::manifest(0), 0).expect("created");
    let pool = SlotPool::open(pool.into_device()).expect("opens");
    assert_eq!(names(&pool), [FileName::manifest(0)]);
}

#[test]
fn without_a_store_nothing_is_created() {
    let mut pool = SlotPool::open(MemorySlots::new(1)).expect("opens");
    assert!(matches!(pool.create(FileName::table(1), 0), Err(Error::InvalidArgument(_))));
}

#[test]
fn a_newer_format_is_refused() {
    let mut slots = MemorySlots::new(1);
    let mut page = claim(0, STORE, FileName::table(1), 1);
    for copy in [0, 1024, 2048, 3072] {
        page[copy + 4] = 3;
        let hash = varve::codec::hash::xxh3(&page[copy..copy + 40], 0);
        page[copy + 40..copy + 48].copy_from_slice(&hash.to_le_bytes());
    }
    *slots.slot_mut(0).expect("exists") = page;
    assert_eq!(SlotPool::open(slots).err(), Some(Error::Version { found: 3, supported: 2 }));
}

/// Slots that a host can close and open, as it does to lend them.
#[derive(Clone)]
struct Doors {
    slots: MemorySlots,
    closed: Vec<bool>,
    flushes: u32,
}

impl Doors {
    fn new(count: u32) -> Self {
        Self { slots: MemorySlots::new(count), closed: vec![false; count as usize], flushes: 0 }
    }

    fn door(&self, slot: u32) -> Result<(), SlotError> {
        if self.closed[slot as usize] { Err(SlotError::Closed) } else { Ok(()) }
    }
}

impl Slots for Doors {
    same_as!(slots: count size);

    fn is_open(&self, slot: u32) -> bool {
        !self.closed[slot as usize]
    }

    fn read(&self, slot: u32, offset: u64, into: &mut [u8]) -> Result<usize, SlotError> {
        self.door(slot)?;
        self.slots.read(slot, offset, into)
    }

    fn write(&mut self, slot: u32, offset: u64, bytes: &[u8]) -> Result<usize, SlotError> {
        self.door(slot)?;
        self.slots.write(slot, offset, bytes)
    }

    fn flush(&mut self, slot: u32) -> Result<(), SlotError> {
        self.flushes += 1;
        self.door(slot)
    }

    fn truncate(&mut self, slot: u32, bytes: u64) -> Result<(), SlotError> {
        self.door(slot)?;
        self.slots.truncate(slot, bytes)
    }
}

fn doors(count: u32) -> SlotPool<Doors> {
    let mut pool = SlotPool::open(Doors::new(count)).expect("opens");
    pool.adopt(STORE);
    pool
}

#[test]
fn a_lent_file_comes_back_as_long_as_its_writer_says() {
    let mut pool = doors(3);
    let file = FileName::table(1);
    let slot = pool.lend(file, 5000).expect("lent").expect("a slot is free");
    let header = SlotHeader::decode(pool.device().slots.slot(slot), slot).expect("known").expect("valid");
    assert_eq!(file_of(&header), Some(file), "the claim is written before the slot leaves");
    pool.device_mut().closed[slot as usize] = true;
    assert!(
        read(&pool, file, 0, 1).is_err() && pool.write(file, 0, &[1]).is_err() && names(&pool).is_empty()
    );
    assert_eq!(pool.reclaim(file, 5000), Err(Error::Io("a lent slot was not opened again")));
    // The compactor writes through a handle of its own; then the host opens the slot again.
    let _ = pool.device_mut().slots.write(slot, SLOT_HEADER_BYTES, &[6; 5000]);
    pool.device_mut().closed[slot as usize] = false;
    assert_eq!(pool.reclaim(file, 5001), Err(Error::corrupt(file, 5001, "a lent slot came back short")));
    pool.reclaim(file, 5000).expect("it is there");
    assert_eq!(read(&pool, file, 4999, 1), Ok(vec![6]));
    assert_eq!(names(&pool), [file]);
}

#[test]
fn a_lent_slot_that_is_much_longer_than_its_table_is_cut() {
    let mut pool = doors(1);
    let file = FileName::table(1);
    let used = SLOT_HEADER_BYTES + 50_000;
    for (written, kept) in [(55_000, SLOT_HEADER_BYTES + 55_000), (90_000, used)] {
        let slot = pool.lend(file, 90_000).expect("lent").expect("a slot is free");
        let _ = pool.device_mut().slots.write(slot, SLOT_HEADER_BYTES, &vec![6; written]);
        pool.reclaim(file, 50_000).expect("it is there");
        assert_eq!((pool.device().slots.bytes(), pool.bytes_on_disk()), (kept, kept));
        assert_eq!(read(&pool, file, 49_999, 1), Ok(vec![6]));
        pool.delete(file).expect("exists");
    }
}

#[test]
fn an_aborted_slot_is_free_once_it_is_open_again() {
    let mut pool = doors(2);
    let slot = pool.lend(FileName::table(1), 0).expect("lent").expect("a slot is free");
    pool.device_mut().closed[slot as usize] = true;
    pool.abort_lent(FileName::table(1));
    assert_eq!(pool.free_slots(), 1);
    pool.added().expect("known format");
    assert_eq!(pool.free_slots(), 1, "it is still closed");
    pool.device_mut().closed[slot as usize] = false;
    pool.added().expect("known format");
    assert_eq!((pool.free_slots(), names(&pool).len()), (2, 0));
}

#[test]
fn slots_added_later_are_free_and_wanted_until_four_are() {
    let mut pool = pool(2);
    assert_eq!((pool.free_slots(), pool.wanted_slots()), (2, 2));
    pool.create(FileName::wal(1), 0).expect("created");
    assert_eq!(pool.wanted_slots(), 3);
    pool.device_mut().add(5);
    pool.added().expect("known format");
    assert_eq!((pool.free_slots(), pool.wanted_slots()), (6, 0));
}

#[test]
fn a_claim_in_a_slot_that_was_closed_at_open_never_outranks_what_was_made_since() {
    let file = FileName::table(9);
    let mut device = Doors::new(3);
    *device.slots.slot_mut(0).expect("exists") = claim(0, STORE, FileName::manifest(0), 3);
    *device.slots.slot_mut(2).expect("exists") = claim(2, STORE, file, 7);
    device.closed[2] = true;
    let mut pool = SlotPool::open(device).expect("opens");
    pool.create(file, 0).expect("the engine knows of no such file");
    pool.write(file, 0, b"new").expect("written");
    pool.device_mut().closed[2] = false;
    pool.added().expect("known format");
    assert_eq!((pool.slot_of(file), pool.free_slots()), (Some(1), 1));
    let pool = SlotPool::open(pool.into_device()).expect("opens");
    assert_eq!((pool.slot_of(file), read(&pool, file, 0, 3)), (Some(1), Ok(b"new".to_vec())));
}

#[test]
fn a_quarantined_slot_is_never_used_again_and_a_closed_one_not_meanwhile() {
    let mut pool = doors(2);
    pool.create(FileName::table(1), 0).expect("created");
    pool.quarantine(pool.slot_of(FileName::table(1)).expect("exists"));
    assert!(read(&pool, FileName::table(1), 0, 0).is_err());
    pool.added().expect("known format");
    assert_eq!(pool.free_slots(), 1);
    // A spare slot that the host has closed for a short time is left alone.
    pool.device_mut().closed[1] = true;
    assert_eq!(pool.create(FileName::table(2), 0), Err(Error::StorageFull));
    pool.device_mut().closed[1] = false;
    pool.create(FileName::table(2), 0).expect("created");
}

/// The story: the flush of a table failed once. Its slot was empty again and fitted best, so each later try went there, and failed as well,
/// until the store was opened again.
#[test]
fn a_slot_whose_flush_failed_takes_no_other_file() {
    let mut pool = doors(2);
    let [first, second] = [1, 2].map(FileName::table);
    pool.create(first, 5000).expect("created");
    let slot = pool.slot_of(first).expect("exists");
    pool.device_mut().closed[slot as usize] = true;
    assert_eq!(pool.sync(first), Err(Error::Io("a file was closed from outside")));
    pool.device_mut().closed[slot as usize] = false;
    pool.delete(first).expect("exists");
    assert_eq!((pool.free_slots(), pool.wanted_slots()), (1, 3), "the host makes another one");
    pool.create(second, 5000).expect("created");
    pool.sync(second).expect("synced");
    assert_eq!(pool.lend(first, 5000), Ok(None));
}

#[test]
fn a_sync_flushes_only_what_was_written_since() {
    let mut pool = doors(1);
    let file = FileName::wal(1);
    pool.create(file, 0).expect("created");
    let flushed = pool.device().flushes;
    pool.write(file, 0, &[1]).expect("written");
    assert_eq!(pool.device().flushes, flushed, "the claim waits for the first sync");
    pool.sync(file).expect("synced");
    pool.sync(file).expect("synced");
    assert_eq!(pool.device().flushes, flushed + 1, "claim and data are one flush");
    // The writes of an earlier process may never have been flushed.
    let mut pool = SlotPool::open(pool.into_device()).expect("opens");
    pool.sync(file).expect("synced");
    assert_eq!(pool.device().flushes, flushed + 2);
}
