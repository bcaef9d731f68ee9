"""The rows of a CSV file as features of an exported model: what schema.json says, in Python. Needs NumPy and xxhash."""
import csv
import json
import math

import numpy
import xxhash


class Schema:
    def __init__(self, export):
        with open(f"{export}/schema.json", encoding="utf-8") as file:
            self.json = json.load(file)
        for column in self.json["numeric"]:
            column["edges"] = numpy.array(column.get("bucketEdges", []), numpy.float32)

    def hashed(self, text, field):
        return xxhash.xxh3_64_intdigest(text.encode(), field) % self.json["hash"]["rows"]

    def find_columns(self, header):
        """Sets the numbers of the columns that the schema names."""
        for column in self.json["categorical"] + self.json["numeric"]:
            if "name" in column:
                column["column"] = header.index(column["name"])

    def encode(self, line):
        """Returns the ids and the numbers of one row."""
        ids = [self.hashed(line[column["column"]], column["field"]) for column in self.json["categorical"]]
        numbers = []
        for column in self.json["numeric"]:
            text = line[column["column"]]
            missing = text in self.json["missing"]
            x = numpy.float32(0 if missing else text)
            if "bucketEdges" in column:
                edges = column["edges"]
                bucket = len(edges) + 1 if missing else int(numpy.searchsorted(edges, x, side="right"))
                ids.append(self.hashed(str(bucket), column["field"]))
            value = math.copysign(math.log1p(abs(float(x))), x) if column["log"] else float(x)
            numbers.append(0 if missing else (value - column["mean"]) * column["inverseDeviation"])
        return ids, numbers


def read(export, data):
    """Returns the ids (int64, samples x fields) and the numerics (float32, samples x columns) of all rows."""
    schema = Schema(export)
    with open(data, newline="", encoding="utf-8-sig") as file:
        lines = [[text.strip() for text in line] for line in
                 csv.reader(file, delimiter=schema.json["delimiter"], skipinitialspace=True)]
    if schema.json["header"]:
        schema.find_columns(lines[0])
    encoded = [schema.encode(line) for line in lines[schema.json["header"]:] if any(line)]
    return (numpy.array([ids for ids, _ in encoded], numpy.int64).reshape(len(encoded), -1),
            numpy.array([numbers for _, numbers in encoded], numpy.float32).reshape(len(encoded), -1))
