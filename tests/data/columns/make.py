#!/usr/bin/env python3
"""Writes the files of this folder with pyarrow, and table.csv, the text that they are read as.

  PYTHONPATH=build/wheels-arrow tests/data/columns/make.py     (Python 3.11, after ./dev setup parquet)
"""
import datetime
import decimal
import os

import pyarrow
from pyarrow import feather, ipc, parquet

FOLDER = os.path.dirname(os.path.abspath(__file__))
ROWS = 120
UTC = datetime.timezone.utc


def at(name):
    return os.path.join(FOLDER, name)


def unless(missing, value):
    return None if missing else value


def table():
    n = range(ROWS)
    texts = ["plain", "with, comma", 'a "quote"', "two\nlines", " blank ", "", "é"]
    days = [datetime.date(2024, 1, 1) + datetime.timedelta(days=i) for i in n]
    times = [datetime.datetime(2024, 2, 28, 23, 59, 59, 250000 * (i % 2), tzinfo=UTC) + datetime.timedelta(hours=i) for i in n]
    return pyarrow.table({
        "clicked": pyarrow.array([i % 3 == 0 for i in n]),
        "small": pyarrow.array([unless(i % 10 == 9, i - 60) for i in n], pyarrow.int8()),
        "large": pyarrow.array([(1 << 62) + i for i in n], pyarrow.int64()),
        "unsigned": pyarrow.array([(1 << 64) - 1 - i if i % 50 == 7 else i for i in n], pyarrow.uint64()),
        "half": pyarrow.array([i / 4 for i in n], pyarrow.float32()).cast(pyarrow.float16()),
        "single": pyarrow.array([unless(i % 7 == 3, i / 10) for i in n], pyarrow.float32()),
        "double": pyarrow.array([float("nan") if i % 11 == 5 else i / 3 for i in n], pyarrow.float64()),
        "price": pyarrow.array([unless(i % 13 == 1, decimal.Decimal(i * 105) / 100) for i in n], pyarrow.decimal128(9, 2)),
        "day": pyarrow.array(days, pyarrow.date32()),
        "time": pyarrow.array(times, pyarrow.timestamp("us", tz="UTC")),
        "local": pyarrow.array([t.replace(tzinfo=None, microsecond=0) for t in times], pyarrow.timestamp("ms")),
        "clock": pyarrow.array([datetime.time(i % 24, i % 60, 1) for i in n], pyarrow.time32("s")),
        "text": pyarrow.array([unless(i % 17 == 4, texts[i % len(texts)]) for i in n]),
        "bytes": pyarrow.array([b"b%d" % (i % 5) for i in n], pyarrow.binary()),
        "category": pyarrow.array([unless(i % 19 == 8, "c%d" % (i % 4)) for i in n]).dictionary_encode(),
        "nothing": pyarrow.nulls(ROWS),
    })


def field(value):
    if value is None or value != value:
        return ""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        return str(int(value)) if value == int(value) else repr(value)
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, datetime.datetime):
        text = str(value.replace(tzinfo=None, microsecond=0))
        if value.tzinfo is None and text.endswith(" 00:00:00"):
            text = text[:-9]
        return text + (f".{value.microsecond:06}" if value.microsecond else "") + ("Z" if value.tzinfo else "")
    text = str(value)
    if text != text.strip(" \r") or any(c in text for c in ',"\n\r'):
        return '"' + text.replace('"', '""') + '"'
    return text


def with_codes(whole, **types):
    """The table with codes of these types in some columns."""
    for name, code in types.items():
        column = whole[name].combine_chunks()
        coded = column if pyarrow.types.is_dictionary(column.type) else column.dictionary_encode()
        codes = pyarrow.DictionaryArray.from_arrays(coded.indices.cast(code), coded.dictionary)
        whole = whole.set_column(whole.column_names.index(name), name, codes)
    return whole


def main():
    whole = table()
    with open(at("table.csv"), "w", encoding="utf-8") as file:
        file.write(",".join(whole.column_names) + "\n")
        for row in whole.to_pylist():
            file.write(",".join(field(value) for value in row.values()) + "\n")
    for codec in ("none", "snappy", "gzip", "zstd", "lz4", "brotli"):
        parquet.write_table(whole, at(f"{codec}.parquet"), compression=codec, row_group_size=50, write_page_checksum=codec == "none",
                            data_page_version="2.0" if codec == "zstd" else "1.0", use_dictionary=codec != "gzip")
    # The dictionaries become too large after some rows, so that plain texts follow.
    parquet.write_table(whole, at("mixed.parquet"), row_group_size=50, dictionary_pagesize_limit=16, write_batch_size=8, data_page_size=64)
    feather.write_feather(with_codes(whole, text=pyarrow.uint8(), bytes=pyarrow.int16(), category=pyarrow.uint64(), local=pyarrow.int64()),
                          at("codes.arrow"), compression="uncompressed")
    feather.write_feather(whole, at("lz4.arrow"), compression="lz4", chunksize=50)
    with ipc.new_stream(at("stream.arrow"), whole.schema) as stream:
        stream.write_table(whole, max_chunksize=50)
    nested = pyarrow.table({"age": [1, 2], "tags": [["a"], ["b", "c"]]})
    parquet.write_table(nested, at("nested.parquet"))
    feather.write_feather(nested, at("nested.arrow"), compression="uncompressed")
    parquet.write_table(whole.slice(0, 0), at("empty.parquet"))


if __name__ == "__main__":
    main()
