-- Values at the edges of each type; the two engines of make.py and expressions.rs both run this.
CREATE TABLE edge AS SELECT
  id,
  CAST(i8 AS TINYINT) AS i8, CAST(i16 AS SMALLINT) AS i16, CAST(i32 AS INTEGER) AS i32,
  CAST(i64 AS BIGINT) AS i64, CAST(f32 AS REAL) AS f32, CAST(f64 AS DOUBLE) AS f64,
  CAST(d9 AS DECIMAL(9, 2)) AS d9, CAST(d18 AS DECIMAL(18, 4)) AS d18,
  CAST(d38 AS DECIMAL(38, 6)) AS d38, b, s, CAST(dt AS DATE) AS dt, CAST(ts AS TIMESTAMP) AS ts
FROM (VALUES
  (1, 127, 32767, 2147483647, 9223372036854775807, '3.4e38', '1.7e308', '9999999.99', '99999999999999.9999', '99999999999999999999999999999999.999999', true, 'Zebra', '9999-12-31', '2200-12-31 23:59:59.999999'),
  (2, -128, -32768, -2147483648, -9223372036854775808, '-3.4e38', '-1.7e308', '-9999999.99', '-99999999999999.9999', '-99999999999999999999999999999999.999999', false, '', '0001-01-01', '1700-01-01 00:00:00'),
  (3, 0, 0, 0, 0, '-0.0', '-0.0', '0.00', '0.0000', '0.000000', true, 'äöü ß', '1969-12-31', '1969-12-31 23:59:59.999999'),
  (4, 1, 1, 1, 1, 'NaN', 'NaN', '0.01', '0.0001', '0.000001', false, '100%_\x', '1970-01-01', '1970-01-01 00:00:00'),
  (5, -1, -1, -1, -1, 'Infinity', 'Infinity', '-0.01', '-0.0001', '-0.000001', NULL, '日本語', '2000-02-29', '2000-02-29 12:30:15.5'),
  (6, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
  (7, 42, 42, 42, 42, '-Infinity', '-Infinity', '42.00', '42.0000', '42.000000', true, '42', '2024-12-31', '2024-12-31 00:00:00')
) AS v(id, i8, i16, i32, i64, f32, f64, d9, d18, d38, b, s, dt, ts);

-- Small values, so that arithmetic has results.
CREATE TABLE mild AS SELECT
  id,
  CAST(i8 AS TINYINT) AS i8, CAST(i16 AS SMALLINT) AS i16, CAST(i32 AS INTEGER) AS i32,
  CAST(i64 AS BIGINT) AS i64, CAST(f32 AS REAL) AS f32, CAST(f64 AS DOUBLE) AS f64,
  CAST(d9 AS DECIMAL(9, 2)) AS d9, CAST(d18 AS DECIMAL(18, 4)) AS d18,
  CAST(d38 AS DECIMAL(38, 6)) AS d38, b, s, CAST(dt AS DATE) AS dt, CAST(ts AS TIMESTAMP) AS ts
FROM (VALUES
  (1, 3, 3, 3, 3, '1.5', '1.5', '1.50', '2.2500', '3.125000', true, 'abc', '2024-02-29', '2024-02-29 13:45:30'),
  (2, -2, -7, -7, -7, '-2.25', '-2.25', '-2.50', '-7.1250', '-0.500000', false, 'Abc', '1965-07-04', '1965-07-04 01:02:03'),
  (3, 5, 5, 5, 5, '0.5', '0.5', '0.01', '1.0000', '10.000000', NULL, '  pad ', '1999-12-31', '1999-12-31 23:59:59'),
  (4, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, true, NULL, NULL, NULL),
  (5, 2, 9, 100, 1000, '8', '8', '12.34', '99.9900', '-1.000001', false, 'a.b*c', '2023-01-01', '2023-01-01 00:00:00')
) AS v(id, i8, i16, i32, i64, f32, f64, d9, d18, d38, b, s, dt, ts);

-- Unsigned integers, and timestamps of a zone with summer time (Europe/Berlin in both engines).
CREATE TABLE other AS SELECT
  id,
  CAST(u8 AS TINYINT UNSIGNED) AS u8, CAST(u16 AS SMALLINT UNSIGNED) AS u16,
  CAST(u32 AS INTEGER UNSIGNED) AS u32, CAST(u64 AS BIGINT UNSIGNED) AS u64,
  CAST(i32 AS INTEGER) AS i32, CAST(i64 AS BIGINT) AS i64, CAST(f64 AS DOUBLE) AS f64,
  CAST(d9 AS DECIMAL(9, 2)) AS d9, s, CAST(dt AS DATE) AS dt, CAST(ts AS TIMESTAMP) AS ts,
  CAST(tz AS TIMESTAMP WITH TIME ZONE) AS tz
FROM (VALUES
  (1, '255', '65535', '4294967295', '18446744073709551615', 2147483647, 9223372036854775807, '1.5', '255.00', '255', '2024-03-31', '2024-03-31 02:30:00', '2024-03-31 00:59:59.999999Z'),
  (2, '0', '0', '0', '0', -1, -1, '-0.0', '-1.00', '0', '1969-12-31', '1969-12-31 23:59:59.999999', '2024-03-31 01:00:00Z'),
  (3, '1', '1', '1', '1', 1, 1, '1', '1.00', '-1', '2024-10-27', '2024-10-27 02:30:00', '2024-10-27 00:30:00Z'),
  (4, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
  (5, '7', '300', '70000', '5000000000', 300, -5000000000, '1e10', '300.50', '300', '1970-01-01', '1970-01-01 01:00:00', '1970-01-01 00:00:00Z'),
  (6, '200', '200', '200', '9223372036854775808', 0, -9223372036854775808, 'NaN', '0.01', 'x', '1900-01-01', '1900-01-01 00:00:00', '1900-01-01 00:00:00+05:30')
) AS v(id, u8, u16, u32, u64, i32, i64, f64, d9, s, dt, ts, tz);
