"""The rows of a CSV file as features of an exported model: what schema.json says, in Python. Needs NumPy and xxhash."""
import csv
import datetime
import json
import math

import numpy
import xxhash


class Schema:
    def __init__(self, export):
        with open(f"{export}/schema.json", encoding="utf-8") as file:
            self.json = json.load(file)
        # Models of earlier versions round numbers to float32 before they are compared and standardised.
        self.number = numpy.float64 if self.json.get("precision") == "float64" else numpy.float32
        self.more = {text.strip() for text in self.json.get("moreMissing", [])}
        self.more_numbers = {float(text) for text in self.more if is_number(text)}
        for column in self.json["numeric"]:
            column["edges"] = numpy.array(column.get("bucketEdges", []), self.number)

    def hashed(self, text, field):
        return xxhash.xxh3_64_intdigest(text.encode(), field) % self.json["hash"]["rows"]

    def find_columns(self, header):
        """Sets the numbers of the columns that the schema names, and compares the names of those that it counts."""
        for column in self.json["categorical"] + self.json["numeric"]:
            if "name" in column:
                column["column"] = header.index(column["name"])
            elif self.json.get("headerNames", header)[column["column"]] != header[column["column"]]:
                raise ValueError(f"column {column['column']} is {header[column['column']]!r}, which is another one "
                                 "than in the training data")

    def is_missing(self, text):
        plain = text.lower() if self.json.get("missingIgnoresCase") else text
        if plain in self.json["missing"] or text in self.more:
            return True
        return bool(self.more_numbers) and is_number(text) and float(text) in self.more_numbers

    def value(self, text, column):
        """The number that the column holds, or the part of a date in a form that Python reads (ISO 8601)."""
        if "part" not in column:
            return self.number(text)
        date = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
        utc = date if date.tzinfo else date.replace(tzinfo=datetime.timezone.utc)
        return self.number({"time": utc.timestamp(), "year": date.year, "month": date.month,
                            "weekday": date.weekday(), "hour": date.hour}[column["part"]])

    def encode(self, line):
        """Returns the ids and the numbers of one row."""
        ids = [self.hashed(line[column["column"]], column["field"]) for column in self.json["categorical"]]
        numbers = []
        for column in self.json["numeric"]:
            text = line[column["column"]].strip()
            missing = self.is_missing(text)
            x = self.number(0) if missing else self.value(text, column)
            if "bucketEdges" in column:
                edges = column["edges"]
                bucket = len(edges) + 1 if missing else int(numpy.searchsorted(edges, x, side="right"))
                ids.append(self.hashed(str(bucket), column["field"]))
            value = math.copysign(math.log1p(abs(float(x))), x) if column["log"] else float(x)
            numbers.append(0 if missing else (value - column["mean"]) * column["inverseDeviation"])
        return ids, numbers


def is_number(text):
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


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
