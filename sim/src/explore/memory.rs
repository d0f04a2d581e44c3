//! Two hints about memory, and the only unsafe code of the explorer: nothing it computes depends on either.

/// Asks the processor to fetch the cache line of `items[index]`.
#[inline]
pub(super) fn prefetch<T>(items: &[T], index: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(item) = items.get(index) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the instruction reads nothing architecturally and never faults; the pointer comes from a reference.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(item).cast::<i8>()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (items, index);
}

/// Asks the kernel to back the memory of a large vector with huge pages: random look-ups then miss the translation
/// buffer far less often.
pub(super) fn in_huge_pages<T>(items: &Vec<T>) {
    #[cfg(target_os = "linux")]
    {
        use nix::sys::mman::{MmapAdvise, madvise};
        const HUGE: usize = 2 << 20;
        let start = items.as_ptr().addr().next_multiple_of(HUGE);
        let end = (items.as_ptr().addr() + items.capacity() * size_of::<T>()) / HUGE * HUGE;
        if let Some(address) = std::ptr::NonNull::new(items.as_ptr().with_addr(start).cast_mut().cast())
            && start < end
        {
            // SAFETY: whole pages inside one live allocation; the advice changes how they are backed, never what they
            // hold. Where the kernel refuses, they are backed as before.
            let _ = unsafe { madvise(address, end - start, MmapAdvise::MADV_HUGEPAGE) };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = items;
}
