//! Local times of a zone: what `CAST(timestamp AS TIMESTAMP WITH TIME ZONE)` does where clocks change.
//!
//! As PostgreSQL has it: a time that the clocks pass twice is the later one (standard time), a time
//! that they skip is read by the offset in force before (02:30 becomes 03:30).

use arrow::array::timezone::Tz;
use arrow::array::types::ArrowTimestampType;
use arrow::array::{ArrayRef, AsArray, PrimitiveArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, TimeUnit, TimestampMicrosecondType, TimestampMillisecondType,
    TimestampNanosecondType, TimestampSecondType,
};
use chrono::{Duration, NaiveDateTime, Offset, TimeZone};
use datafusion_common::Result;
use std::sync::Arc;

/// No clocks skip more than a day (a change of the date line), and they change at whole quarters.
const STEPS: i32 = 96;
const STEP: Duration = Duration::minutes(15);

/// `array` of timestamps without a zone as local times of `zone`, in `unit`.
///
/// # Errors
/// An unknown zone, and a time that `unit` cannot count.
pub(super) fn local_to_zoned(
    array: &ArrayRef,
    unit: TimeUnit,
    zone: &Arc<str>,
) -> Result<ArrayRef> {
    let local = cast(array, &DataType::Timestamp(unit, None))?;
    let tz: Tz = zone.parse()?;
    Ok(match unit {
        TimeUnit::Second => resolve::<TimestampSecondType>(&local, tz, zone),
        TimeUnit::Millisecond => resolve::<TimestampMillisecondType>(&local, tz, zone),
        TimeUnit::Microsecond => resolve::<TimestampMicrosecondType>(&local, tz, zone),
        TimeUnit::Nanosecond => resolve::<TimestampNanosecondType>(&local, tz, zone),
    })
}

/// NULL for what the calendar does not reach.
fn resolve<T: ArrowTimestampType>(local: &ArrayRef, tz: Tz, zone: &Arc<str>) -> ArrayRef {
    let per_second = match T::UNIT {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
    };
    let zoned: PrimitiveArray<T> = local.as_primitive::<T>().unary_opt(|value| {
        let seconds = value.div_euclid(per_second);
        let time = chrono::DateTime::from_timestamp(seconds, 0)?.naive_utc();
        let offset = i64::from(offset_seconds(tz, time)?);
        value.checked_sub(offset * per_second)
    });
    Arc::new(zoned.with_timezone(Arc::clone(zone)))
}

/// Seconds that the local time `time` is ahead of UTC.
fn offset_seconds(tz: Tz, time: NaiveDateTime) -> Option<i32> {
    (0..=STEPS).find_map(|steps| {
        let before = time.checked_sub_signed(STEP * steps)?;
        let offset = tz.offset_from_local_datetime(&before).latest()?;
        Some(offset.fix().local_minus_utc())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Array, TimestampSecondArray};

    fn seconds(text: &str) -> i64 {
        let time = NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S").unwrap();
        time.and_utc().timestamp()
    }

    fn zoned(local: &[&str], zone: &str) -> Vec<i64> {
        let local: Vec<i64> = local.iter().map(|text| seconds(text)).collect();
        let array: ArrayRef = Arc::new(TimestampSecondArray::from(local));
        let result = local_to_zoned(&array, TimeUnit::Millisecond, &zone.into()).unwrap();
        let result = result.as_primitive::<TimestampMillisecondType>();
        result.values().iter().map(|value| value / 1000).collect()
    }

    #[test]
    fn skipped_and_repeated_times_are_what_postgres_makes_of_them() {
        let found = zoned(
            &["2024-03-31 01:59:59", "2024-03-31 02:30:00", "2024-10-27 02:30:00"],
            "Europe/Berlin",
        );
        let expected = ["2024-03-31 00:59:59", "2024-03-31 01:30:00", "2024-10-27 01:30:00"];
        assert_eq!(found, expected.map(seconds));
        // Samoa skipped a day.
        let found = zoned(&["2011-12-30 12:00:00"], "Pacific/Apia");
        assert_eq!(found, [seconds("2011-12-30 22:00:00")]);
        let found = zoned(&["1969-12-31 23:59:59"], "+05:30");
        assert_eq!(found, [seconds("1969-12-31 18:29:59")]);
    }

    #[test]
    fn nulls_stay_and_an_unknown_zone_is_an_error() {
        let array: ArrayRef = Arc::new(TimestampSecondArray::from(vec![None, Some(0)]));
        let result = local_to_zoned(&array, TimeUnit::Second, &"UTC".into()).unwrap();
        assert_eq!(result.null_count(), 1);
        assert!(local_to_zoned(&array, TimeUnit::Second, &"Nowhere/Land".into()).is_err());
    }
}
