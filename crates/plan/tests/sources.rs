//! Operators without inputs: memory scans, values.

use planish_testkit::{batches, driving, plans, rows};

#[test]
fn a_memory_scan_gives_its_rows_however_it_is_driven() {
    for partitions in [1, 2, 8] {
        for data in [batches::mixed(100, 1), batches::mixed(0, 1), batches::all_null(5)] {
            let expected = rows::of_record_batches(std::slice::from_ref(&data));
            driving::assert_drives(|| plans::scan(&data, partitions), &expected);
        }
    }
}
