#!/usr/bin/env python3
"""Makes the small data set in examples/data: a chain of shops, fictitious.

    examples/make_data.py        (with the Python of the benchmark's venv: bench/setup.sh)

The same bytes at each run with the same PyArrow: all values come from a seeded generator.
"""

import csv
import datetime as dt
import random
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

OUT = Path(__file__).resolve().parent / "data"
CITIES = [
    ("Oslo", "North"), ("Malmö", "North"), ("Aarhus", "North"), ("Utrecht", "West"),
    ("Ghent", "West"), ("Lyon", "West"), ("Porto", "South"), ("Málaga", "South"),
    ("Bari", "South"), ("Brno", "East"), ("Graz", "East"), ("Gdańsk", "East"),
]  # fmt: skip
CATEGORIES = {
    "coffee": ["Espresso beans", "Filter roast", "Decaf", "Cold brew", "Instant"],
    "tea": ["Green", "Black", "Rooibos", "Mint", "Oolong"],
    "kitchen": ["Kettle", "Grinder", "French press", "Scale", "Mug"],
    "pantry": ["Honey", "Oat milk", "Cocoa", "Biscuits", "Granola"],
}
DAYS = 365
SALES = 12_000


def stores():
    for number, (city, region) in enumerate(CITIES, start=1):
        # The newest shop has no manager yet: an empty field is NULL.
        manager = "" if number == len(CITIES) else random.choice(["Ana", "Bo", "Cleo", "Dirk"])
        yield number, city, region, dt.date(2015 + number % 9, number, number), manager


def products():
    number = 0
    for category, names in CATEGORIES.items():
        for name in names:
            number += 1
            cents = random.randrange(250, 1500) * (6 if category == "kitchen" else 1)
            yield number, name, category, Decimal(cents) / 100


def sales(prices):
    start = dt.datetime(2025, 1, 1)
    minutes = sorted(random.randrange(DAYS * 1440) for _ in range(SALES))
    # The newest shop has not sold anything yet.
    weights = [random.uniform(0.5, 2) for _ in CITIES[1:]] + [0]
    for number, minute in enumerate(minutes, start=1):
        store = random.choices(range(1, len(CITIES) + 1), weights)[0]
        product = random.randrange(1, len(prices) + 1)
        discount = random.choice([None, None, None, Decimal("0.05"), Decimal("0.10")])
        quantity = min(1 + int(random.expovariate(0.7)), 12)
        yield (
            number,
            start + dt.timedelta(minutes=minute),
            store,
            product,
            quantity,
            prices[product],
            discount,
        )


def main():
    random.seed(2025)
    OUT.mkdir(exist_ok=True)
    with open(OUT / "stores.csv", "w", encoding="utf-8", newline="") as f:
        writer = csv.writer(f, lineterminator="\n")
        writer.writerow(["store_id", "city", "region", "opened", "manager"])
        writer.writerows(stores())

    catalogue = list(products())
    with open(OUT / "products.csv", "w", encoding="utf-8", newline="") as f:
        writer = csv.writer(f, lineterminator="\n")
        writer.writerow(["product_id", "name", "category", "list_price"])
        writer.writerows(catalogue)

    schema = pa.schema([
        ("sale_id", pa.int64()),
        ("sold_at", pa.timestamp("us")),
        ("store_id", pa.int32()),
        ("product_id", pa.int32()),
        ("quantity", pa.int32()),
        ("price", pa.decimal128(9, 2)),
        ("discount", pa.decimal128(3, 2)),
    ])  # fmt: skip
    rows = sales({number: price for number, _, _, price in catalogue})
    columns = [pa.array(column, field.type) for column, field in zip(zip(*rows), schema)]
    table = pa.Table.from_arrays(columns, schema=schema)
    pq.write_table(table, OUT / "sales.parquet", compression="zstd", row_group_size=4096)


if __name__ == "__main__":
    main()
