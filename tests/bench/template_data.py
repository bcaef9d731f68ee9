"""The tables of `./dev bench templates`. Each is (training rows, test rows, the column to predict), of a seed.

Adult and Avazu are recorded. The others are generated, because no recorded data of their kind lie in the repository. They
have what such tables have: numbers of several scales with long tails, categories of unequal size, values that are missing
more often for some rows than for others, effects that are not linear and depend on each other, noise that no column
explains, and columns that tell nothing.
"""
import os

import numpy
import pandas

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def adult(seed):
    """UCI Adult, with its own test rows. The seed is that of the order of the training rows."""
    names = ["age", "workclass", "weight", "education", "years", "marital", "occupation", "relation", "race", "sex", "gain",
             "loss", "hours", "country", "income"]
    read = [pandas.read_csv(os.path.join(ROOT, f"examples/data/adult.{part}.csv"), names=names, skipinitialspace=True,
                            na_values="?") for part in ("train", "test")]
    read[1]["income"] = read[1]["income"].str.rstrip(".")
    return read[0].sample(frac=1, random_state=seed), read[1], "income"


def zipf(random, rows, names, power=1.0):
    """Categories of unequal size."""
    shares = 1 / numpy.arange(1, len(names) + 1) ** power
    return random.choice(names, rows, p=shares / shares.sum())


def effect_of(random, values, deviation):
    """An effect of each category, and of each row the one of its category."""
    names, at = numpy.unique(values, return_inverse=True)
    return random.normal(0, deviation, len(names))[at]


def split(table, test_rows, label):
    return table.iloc[:-test_rows], table.iloc[-test_rows:], label


def churn(seed):
    """20,000 customers of a telephone company and 20,000 others for the test; 2 % leave within a month."""
    random = numpy.random.default_rng([seed, 1])
    rows = 40_000
    plan = zipf(random, rows, [f"plan_{c}" for c in "ABCDEFGH"], 0.7)
    contract = random.choice(["monthly", "one year", "two years"], rows, p=[0.5, 0.3, 0.2])
    payment = random.choice(["card", "direct debit", "invoice", "wallet"], rows, p=[0.4, 0.35, 0.15, 0.1])
    region = zipf(random, rows, [f"region {i:02d}" for i in range(40)])
    device = zipf(random, rows, [f"device {i:03d}" for i in range(120)], 1.1)
    tenure = numpy.floor(random.exponential(26, rows)).clip(0, 150)
    age = random.normal(44, 15, rows).clip(18, 92).round()
    base_price = 20 + 60 * random.random(8)
    names, at = numpy.unique(plan, return_inverse=True)
    monthly = base_price[at] * random.lognormal(0, 0.18, rows)
    paid = monthly * tenure * random.normal(1, 0.04, rows)
    data_gb = random.lognormal(1.6 + 0.01 * (50 - age), 0.9)
    calls = random.poisson(numpy.where(random.random(rows) < 0.12, 3.0, 0.4))
    late = random.poisson(numpy.where(payment == "invoice", 1.1, 0.25))
    since_contact = random.exponential(120, rows)
    outages = random.poisson(random.gamma(1.2, 1, 40)[numpy.unique(region, return_inverse=True)[1]] * 0.5)
    satisfied = random.normal(0, 1, rows) - 0.5 * calls - 0.2 * outages
    score = (0.5 * (contract == "monthly") * numpy.exp(-tenure / 18) * 4 - 0.9 * (contract == "two years")
             + 0.8 * (calls >= 3) + 0.5 * (late >= 2) * (payment == "invoice")
             + 0.9 * numpy.tanh(4 * (monthly / base_price[at] - 1)) + 0.0008 * (age - 48) ** 2
             - 0.35 * numpy.log1p(data_gb) * (age < 35) + 0.4 * numpy.minimum(outages, 4) * (contract == "monthly")
             + effect_of(random, region, 0.35) + effect_of(random, device, 0.3) - 0.25 * satisfied
             + random.logistic(0, 1, rows))
    leaves = score > numpy.quantile(score, 0.98)
    survey = numpy.where(random.random(rows) < 0.3, (3 + satisfied).round().clip(1, 5), numpy.nan)  # few answer
    table = pandas.DataFrame({
        "customer_id": [f"C{i:07d}" for i in random.permutation(9_999_999)[:rows]],
        "tenure_months": tenure, "plan": plan, "contract": contract, "payment_method": payment, "region": region,
        "device": device, "age": numpy.where(random.random(rows) < 0.08, numpy.nan, age),
        "monthly_charges": monthly.round(2), "total_charges": numpy.where(tenure == 0, numpy.nan, paid.round(2)),
        "data_gb": data_gb.round(3), "support_calls": calls, "late_payments": late,
        "days_since_contact": numpy.where(calls == 0, numpy.nan, since_contact.round()), "outages": outages,
        "survey": survey, "paperless": random.choice(["yes", "no"], rows), "newsletter": random.choice(["yes", "no"], rows),
        "churned": numpy.where(leaves, "yes", "no"),
    })
    return split(table, 20_000, "churned")


def houses(seed):
    """Sales of 10,000 houses and 5,000 others for the test; the price is log-normal."""
    random = numpy.random.default_rng([seed, 2])
    rows = 15_000
    centres = random.normal(0, 6, (60, 2))
    district = random.choice(60, rows, p=(lambda s: s / s.sum())(1 / numpy.arange(1, 61) ** 0.6))
    place = centres[district] + random.normal(0, 0.9, (rows, 2))
    distance = numpy.hypot(place[:, 0], place[:, 1])
    kind = random.choice(["detached", "semi", "terrace", "flat", "bungalow"], rows, p=[0.3, 0.25, 0.2, 0.2, 0.05])
    area = random.lognormal(4.7, 0.35, rows) * numpy.where(kind == "flat", 0.6, 1.0)
    plot = numpy.where(kind == "flat", numpy.nan, area * random.lognormal(1.2, 0.6, rows))
    rooms = (area / 26 + random.normal(0, 0.8, rows)).round().clip(1, 12)
    built = (2022 - random.gamma(2, 22, rows)).round().clip(1850, 2022)
    age = 2023 - built
    renovated = numpy.where((age > 25) & (random.random(rows) < 0.35), (2023 - random.random(rows) * age * 0.6).round(),
                            numpy.nan)
    quality = (5.5 - 0.01 * age + random.normal(0, 1.5, rows)).round().clip(1, 10)
    condition = random.choice(["poor", "fair", "typical", "good", "excellent"], rows, p=[0.04, 0.12, 0.5, 0.26, 0.08])
    heating = random.choice(["gas", "oil", "electric", "heat pump", "district"], rows, p=[0.5, 0.15, 0.15, 0.12, 0.08])
    garage = random.choice([0, 1, 2, 3], rows, p=[0.3, 0.45, 0.2, 0.05]) * (kind != "flat")
    energy = (90 + 1.6 * age - 40 * ~numpy.isnan(renovated) + random.normal(0, 30, rows)).clip(15, 500)
    month = random.integers(0, 48, rows)
    log_price = (11.2 + 0.82 * (numpy.log(area) - 4.7) + 0.09 * numpy.log1p(numpy.nan_to_num(plot) / 100)
                 + random.normal(0, 0.22, 60)[district] - 0.05 * distance + 0.25 * numpy.sin(place[:, 0] / 2.5)
                 * numpy.cos(place[:, 1] / 3) + 0.065 * (quality - 5) + 0.004 * (quality - 5) ** 2
                 - 0.006 * numpy.minimum(age, 60) + 0.12 * (built < 1910) * (condition != "poor")
                 + 0.10 * ~numpy.isnan(renovated) * (age > 40)
                 + pandas.Series(condition).map({"poor": -0.2, "fair": -0.08, "typical": 0, "good": 0.05,
                                                 "excellent": 0.11}).to_numpy()
                 + 0.06 * garage * (distance > 4) + 0.02 * garage - 0.0006 * numpy.maximum(energy - 150, 0)
                 + 0.006 * month - 0.00009 * month ** 2 + 0.15 * (kind == "flat") * (distance < 3)
                 - 0.05 * (kind == "terrace") + random.normal(0, 0.14, rows))
    day = pandas.Timestamp("2019-01-01") + pandas.to_timedelta(30.4 * month + random.integers(0, 30, rows), unit="D")
    table = pandas.DataFrame({
        "sale_id": numpy.arange(rows) + 500_000, "sold_on": day.strftime("%Y-%m-%d"),
        "district": [f"D{d:02d}" for d in district], "east": place[:, 0].round(4), "north": place[:, 1].round(4),
        "kind": kind, "living_area": area.round(1), "plot_area": numpy.round(plot, 1), "rooms": rooms, "year_built": built,
        "year_renovated": renovated, "quality": quality,
        "condition": numpy.where(random.random(rows) < 0.05, None, condition), "heating": heating, "garage": garage,
        "energy": numpy.where(random.random(rows) < 0.25, numpy.nan, energy.round()),
        "agent": zipf(random, rows, [f"agent {i:03d}" for i in range(200)]), "price": (numpy.exp(log_price) / 100).round() * 100,
    })
    return split(table, 5_000, "price")


def products(seed):
    """30 classes of unequal size: 15,000 rows and 8,000 others for the test."""
    random = numpy.random.default_rng([seed, 3])
    rows, classes, hidden = 23_000, 30, 6
    label = random.choice(classes, rows, p=(lambda s: s / s.sum())(1 / numpy.arange(1, classes + 1) ** 0.7))
    forms = random.normal(0, 1.5, (classes, 2, hidden))  # each class has two forms
    form = (random.random(rows) < 0.35).astype(int)
    latent = forms[label, form] + random.normal(0, 0.75, (rows, hidden))
    mix = random.normal(0, 0.8, (hidden, 12))
    numbers = latent @ mix + 0.5 * numpy.sin(2 * latent @ random.normal(0, 0.6, (hidden, 12))) + random.normal(0, 0.4, (rows, 12))
    numbers[:, 8:] = numpy.exp(0.6 * numbers[:, 8:])  # prices, weights
    table = pandas.DataFrame({f"x{i}": numbers[:, i].round(4) for i in range(12)})
    for i in range(3):
        table[f"x{i}"] = table[f"x{i}"].where(random.random(rows) >= 0.04 + 0.05 * i)
    table["x7"] = table["x7"].where(latent[:, 0] < 2.2)  # not missing at random
    for name, size in (("brand", 80), ("colour", 12), ("material", 9), ("origin", 25)):
        scores = latent @ random.normal(0, 0.7, (hidden, size)) + random.gumbel(0, 1.0, (rows, size))
        table[name] = [f"{name}-{i}" for i in (scores + random.normal(0, 0.8, size)).argmax(axis=1)]
    table["warehouse"] = zipf(random, rows, [f"W{i}" for i in range(30)])
    names = numpy.array([f"category {chr(65 + i % 26)}{i}" for i in range(classes)])
    table["category"] = names[label]
    return split(table, 8_000, "category")


TABLES = {"adult": adult, "churn": churn, "houses": houses, "products": products}
