"""Writes a Parquet table to standard output as CSV (installed by parquet.sh).

    parquet_csv.py FILE

Exit code 1: standard output holds one line that tells why, and no table.
"""
import sys

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as parquet


def flat(field):
    """The type in which a column's values have a text; None: they have none."""
    kind = field.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return None
    if pa.types.is_decimal(kind):
        return pa.float64()
    if pa.types.is_timestamp(kind):
        return pa.timestamp("s")
    if pa.types.is_boolean(kind):
        return pa.int8()
    return kind


def main(path):
    try:
        table = parquet.ParquetFile(path)
        schema = table.schema_arrow
        kinds = [flat(field) for field in schema]
        for field, kind in zip(schema, kinds):
            if kind is None:
                print(f"column '{field.name}' is a {field.type}; only numbers, texts and dates are read")
                return 1
        target = pa.schema([pa.field(f.name, k) for f, k in zip(schema, kinds)])
        batches = table.iter_batches(batch_size=65536)
        first = next(batches, None)
    except (pa.ArrowException, OSError) as error:
        print("no whole Parquet file: " + str(error).splitlines()[0])
        return 1
    with csv.CSVWriter(sys.stdout.buffer, target) as writer:
        while first is not None:
            writer.write_batch(pa.record_batch(
                [column.cast(kind, safe=False) for column, kind in zip(first.columns, kinds)],
                schema=target))
            first = next(batches, None)
    return 0


sys.exit(main(sys.argv[1]))
