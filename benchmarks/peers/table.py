# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From measurements to tables: medians over the turns with their quartiles, and Hone as a ratio to the best peer."""

import statistics

from models import MODELS

# Figures of a row: key of the records, title, digits, whether more is better.
DECODER = (("decode_tokens_per_second", "decode, tokens/s", 1, True), ("prefill_tokens_per_second", "prefill, tokens/s", 0, True),
           ("first_token_seconds", "first token, s", 2, False), ("peak_rss_bytes", "peak memory, MB", 0, False))
ENCODER = (("encode_tokens_per_second", "tokens/s", 0, True), ("first_token_seconds", "first batch, s", 2, False),
           ("peak_rss_bytes", "peak memory, MB", 0, False))
MEGA, GIGA = 1e6, 1e9


MOVED = 0.1  # more of a change of the read limit around a turn is marked


def turn_of(record):
    """Which turn of which row a record is of."""
    return record["name"], record.get("isa", "native"), record["threads"], record["repeat"]


def latest(records, models, threads, only, precisions, isa):
    """{(model, threads, precision): {label: the records of its turns}}, each turn by its last measurement."""
    turns = {}
    for record in records:
        wanted = (record["kind"] == "run" and record["model"] in models and record["threads"] in threads
                  and record["engine"] in only and record["precision"] in precisions and record.get("isa", "native") == isa)
        if wanted:
            turns[turn_of(record)] = record
    groups = {}
    for record in turns.values():
        group = groups.setdefault((record["model"], record["threads"], record["precision"]), {})
        group.setdefault(record["label"], []).append(record)
    return groups


def spread(values):
    first, middle, third = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else 3 * values
    return {"median": middle, "first_quartile": first, "third_quartile": third}


def summary(turns, figures):
    """Median and quartiles of each figure; None where a row failed."""
    good = [turn for turn in turns if not turn["why"]]
    if not good:
        return None
    result = {"ours": good[0]["ours"], "capped": good[0].get("capped", True), "engine": good[0]["engine"],
              "version": good[-1]["version"], "turns": len(good),
              "turns_with_moved_limit": sum(turn.get("limit_moved", 0) > MOVED for turn in good)}
    for key, *_ in figures:
        result[key] = spread([turn[key] for turn in good])
    result["file_bytes"] = good[-1]["file_bytes"]
    if "decode_tokens_per_second" in good[0]:
        rates = [turn["decode_tokens_per_second"] * turn["bytes_read_per_token"] for turn in good]
        shares = [rate / turn["limit"] for rate, turn in zip(rates, good)]
        result["read_bytes_per_second"] = statistics.median(rates)
        result["read_share"] = spread(shares)
    return result


def spread_text(value, digits, scale=1.0):
    """Median, and the quartiles where they are not the same to these digits."""
    middle, first, third = (f"{value[key] / scale:.{digits}f}" for key in ("median", "first_quartile", "third_quartile"))
    return middle if first == third else f"{middle} ({first}-{third})"


def row_cells(label, row, figures):
    cells = [label + (" †" if row["turns_with_moved_limit"] else "")]
    for key, _, digits, _ in figures:
        cells.append(spread_text(row[key], digits, MEGA if key.endswith("bytes") else 1.0))
        if key == "decode_tokens_per_second":
            cells += [f"{row['read_bytes_per_second'] / GIGA:.1f}", spread_text(row["read_share"], 0, 0.01) + " %"]
    return [*cells, f"{row['file_bytes'] / MEGA:.0f}"]


def ratios(rows, figures):
    """Hone's best row by the best of the peers, for each figure; above 1 Hone has more."""
    result = {}
    for key, _, _, more in figures:
        ours = [row[key]["median"] for row in rows.values() if row["ours"]]
        theirs = [row[key]["median"] for row in rows.values() if not row["ours"] and row["capped"]]
        if ours and theirs:
            best = max if more else min
            result[key] = best(ours) / best(theirs)
    return result


def ratio_cells(values, figures):
    cells = ["**Hone / best peer**"]
    for key, *_ in figures:
        cells.append(f"**{values[key]:.2f}**" if key in values else "")
        cells += ["", ""] if key == "decode_tokens_per_second" else []
    return [*cells, ""]


def line(cells):
    return "| " + " | ".join(cells) + " |\n"


def group_table(group, figures):
    """The table of one model, number of threads and precision; and its values."""
    heads = ["engine"]
    for key, title, *_ in figures:
        heads += [title] + (["GB/s", "of the read limit"] if key == "decode_tokens_per_second" else [])
    heads.append("files, MB")
    rows = {label: summary(turns, figures) for label, turns in group.items()}
    good = {label: row for label, row in rows.items() if row}
    compared = ratios(good, figures)
    text = ""
    if good:
        text = line(heads) + line(["---"] * len(heads)) + "".join(
            line(row_cells(label, row, figures)) for label, row in good.items())
        if compared:
            text += line(ratio_cells(compared, figures))
    failed = {label: turns[-1]["why"] for label, turns in group.items() if label not in good}
    text += "".join(f"\n- {label}: {why}\n" for label, why in failed.items())
    text += "".join(f"\n- † {label}: the read limit moved by more than {MOVED:.0%} around {row['turns_with_moved_limit']} of "
                    f"{row['turns']} repeats\n" for label, row in good.items() if row["turns_with_moved_limit"])
    return text, {"rows": good, "hone_to_best_peer": compared, "failed": failed}


def limits_table(records, isa):
    text = line(["threads", "reading, GB/s", "f32, GFLOP/s a thread", "bf16, GFLOP/s a thread", "int8 VNNI, GOP/s a thread"])
    text += line(["---"] * 5)
    last = {record["threads"]: record for record in records
            if record["kind"] == "limits" and record.get("isa", "native") == isa}
    for threads, record in sorted(last.items()):
        keys = ("read_bytes_per_second", "f32_per_second", "bf16_per_second", "int8_per_second")
        text += line([str(threads), *(f"{record[key] / GIGA:.1f}" for key in keys)])
    return text


def build(records, args):
    """The tables as Markdown and their values, for what `args` selects."""
    groups = latest(records, args.models, args.threads, args.only, args.precisions, args.isa)
    text, values, versions = "## The machine's limits\n\n" + limits_table(records, args.isa), {}, {}
    capped = f", capped to {args.isa}" if args.isa != "native" else ""
    for model in args.models:
        figures = DECODER if MODELS[model].decodes else ENCODER
        for threads in args.threads:
            for precision in args.precisions:
                group = groups.get((model, threads, precision))
                if not group:
                    continue
                table_text, table_values = group_table(group, figures)
                text += f"\n## {MODELS[model].title}, {precision}, threads: {threads}{capped}\n\n{table_text}"
                values[f"{model} {precision} {threads}"] = table_values
                versions.update({row["engine"]: row["version"] for row in table_values["rows"].values()})
    text += "\nVersions: " + "; ".join(f"{engine} {version}" for engine, version in sorted(versions.items())) + "\n"
    return text, values
