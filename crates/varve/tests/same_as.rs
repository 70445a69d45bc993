//! For slots that differ from slots in memory in a method or two.

/// Implements these methods of `Slots` with those of a field: `same_as!(slots: count size)`.
macro_rules! same_as {
    ($field:tt: $($method:ident)+) => {
        $($crate::same_as::same_as!(@$method $field);)+
    };
    (@count $field:tt) => {
        fn count(&self) -> u32 {
            self.$field.count()
        }
    };
    (@is_open $field:tt) => {
        fn is_open(&self, slot: u32) -> bool {
            self.$field.is_open(slot)
        }
    };
    (@size $field:tt) => {
        fn size(&self, slot: u32) -> u64 {
            self.$field.size(slot)
        }
    };
    (@read $field:tt) => {
        fn read(&self, slot: u32, offset: u64, into: &mut [u8]) -> Result<usize, SlotError> {
            self.$field.read(slot, offset, into)
        }
    };
    (@write $field:tt) => {
        fn write(&mut self, slot: u32, offset: u64, bytes: &[u8]) -> Result<usize, SlotError> {
            self.$field.write(slot, offset, bytes)
        }
    };
    (@flush $field:tt) => {
        fn flush(&mut self, slot: u32) -> Result<(), SlotError> {
            self.$field.flush(slot)
        }
    };
    (@truncate $field:tt) => {
        fn truncate(&mut self, slot: u32, bytes: u64) -> Result<(), SlotError> {
            self.$field.truncate(slot, bytes)
        }
    };
}

pub(crate) use same_as;
