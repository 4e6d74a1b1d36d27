# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""site.py WORK OUT: builds the documentation site in OUT from docs/, from what TableGen says of dialects and
passes, and from the help of the tools.

Written pages are copied to WORK, generated ones are added there, and MkDocs with the theme Material makes the site,
where a broken link is an error, and a page that no group of GROUPS has. The site needs nothing from elsewhere.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
LLVM = pathlib.Path("/usr/lib/llvm-22")
# Tabs of the site: pages in their order; a folder stands for its pages by title.
GROUPS = {
    "Start": ["index.md", "guide.md", "glossary.md"],
    "Use": ["commands.md", "sparse-attention.md", "tokenizers.md", "artefact.md", "runtime-c-api.md", "performance.md", "security.md"],
    "Train": ["training.md"],
    "Compress": ["calibration.md", "compression.md", "compression/"],
    "Targets": ["cpu-kernels.md", "cuda.md", "cuda-kernels.md", "emulated-gpu.md", "tensor-parallelism.md"],
    "Inside": ["architecture.md", "life-of-a-token.md", "dialects/", "extending.md", "dependencies.md"],
    "Reference": ["operators.md", "microsoft-operators.md", "onnxruntime-tools.md", "exporters.md", "trained-models.md", "operator-checks.md", "Dialects: reference/", "Passes: passes/"],
}


def tablegen(action, source, *arguments):
    command = [LLVM / "bin/mlir-tblgen", action, *arguments, source]
    command += [f"-I{folder}" for folder in (ROOT, ROOT / "dialects", source.parent, ROOT / "include", LLVM / "include")]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def defines(source, pattern):
    return re.search(pattern, source.read_text(), re.MULTILINE)


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(separate_lists(text))


def dialect_pages(work):
    """One page a dialect folder, from the file that sees all of it: the one named <Folder>Ops.td."""
    for folder in sorted((ROOT / "dialects").iterdir()):
        source = folder / f"{folder.name}Ops.td"
        if source.exists():
            name = folder.name.lower()
            write(work / "reference" / f"{name}.md", tablegen("-gen-dialect-doc", source, f"-dialect={name}"))


def pass_pages(work):
    """One page for each file that defines passes; the page of A/B/Passes.td is passes/b.md."""
    for source in sorted([*ROOT.glob("dialects/**/*.td"), *ROOT.glob("include/**/*.td"), *ROOT.glob("lib/**/*.td")]):
        if defines(source, r"^def \w+\s*:\s*Pass<"):
            title = source.parent.name if source.stem == "Passes" else source.stem.removesuffix("Passes")
            body = re.sub(r"^(#+) ", r"#\1 ", tablegen("-gen-pass-doc", source), flags=re.MULTILINE)
            write(work / "passes" / f"{title.lower()}.md", f"# Passes: {title}\n\n[TOC]\n\n{body}")


def separate_lists(text):
    """Markdown as TableGen descriptions write it lets a list follow its sentence; MkDocs wants a blank line between."""
    lines, fenced = [], False
    for line in text.split("\n"):
        item = re.match(r"\s*([-*]|\d+\.) ", line)
        if item and not fenced and lines and lines[-1].strip() and not re.match(r"\s*([-*]|\d+\.) |\s{2,}", lines[-1]):
            lines.append("")
        lines.append(line)
        fenced ^= line.lstrip().startswith("```")
    return "\n".join(lines)


def help_of(*command):
    text = subprocess.run([ROOT / "build/bin" / command[0], *command[1:], "--help"], capture_output=True, text=True).stdout
    return text.split("\nGeneric Options:")[0].strip()


def command_page(work):
    """What the command line tools say of themselves, one section a command."""
    page = "# Commands\n\nWhat the tools print with `--help`. `hone-opt --help` lists the passes.\n\n[TOC]\n"
    for tool in ("hone", "hone-run"):
        listing = re.search(r"^(?:SUBCOMMANDS:\n|commands)\n(.+?)\n\n", help_of(tool), re.MULTILINE | re.DOTALL)[1]
        for command in re.findall(r"^  (\w+) ", listing, re.MULTILINE):
            page += f"\n## {tool} {command}\n\n```text\n{help_of(tool, command)}\n```\n"
    write(work / "commands.md", page)


def title_of(path):
    match = re.search(r"^# (.+)$", path.read_text(), re.MULTILINE)
    return match[1].strip().replace("`", "") if match else path.stem


def pages_of(work, entry):
    """Of an entry of GROUPS: a page, the pages of `folder/`, or those of `Title: folder/` under a heading."""
    title, _, folder = entry.rpartition(": ")
    if not folder.endswith("/"):
        return [{title_of(work / folder): folder}]
    inside = [{title_of(path): str(path.relative_to(work))} for path in (work / folder).rglob("*.md")]
    inside.sort(key=lambda page: next(iter(page)))
    return [{title: inside}] if title else inside


def navigation(work):
    return [{group: [page for entry in entries for page in pages_of(work, entry)]} for group, entries in GROUPS.items()]


def theme():
    """Material without fonts or icons from other servers."""
    palette = [{"scheme": scheme, "media": f"(prefers-color-scheme: {name})", "primary": "indigo",
                "toggle": {"icon": icon, "name": f"Switch to {other}"}}
               for name, scheme, icon, other in (("light", "default", "material/weather-night", "dark"),
                                                 ("dark", "slate", "material/weather-sunny", "light"))]
    features = ["navigation.tabs", "navigation.sections", "navigation.top", "navigation.footer", "toc.follow",
                "search.highlight", "content.code.copy"]
    return {"name": "material", "font": False, "palette": palette, "features": features}


def main():
    work, out = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(ROOT / "docs", work / "pages")
    shutil.copy(ROOT / "scripts/dev/site.css", work / "pages")
    pages = work / "pages"
    dialect_pages(pages)
    pass_pages(pages)
    command_page(pages)
    settings = {
        "site_name": "Hone",
        "docs_dir": str(pages),
        "site_dir": str(out),
        "theme": theme(),
        "extra_css": ["site.css"],
        "use_directory_urls": False,
        "plugins": ["search"],
        "markdown_extensions": ["tables", "sane_lists", {"toc": {"permalink": True}}, "pymdownx.highlight",
                                "pymdownx.superfences"],
        "nav": navigation(pages),
        "validation": {"nav": {"omitted_files": "warn"}, "links": {"anchors": "warn", "unrecognized_links": "warn"}},
    }
    (work / "mkdocs.yml").write_text(yaml.safe_dump(settings, sort_keys=False, allow_unicode=True))
    # Not --quiet, with which no warning counts for --strict.
    subprocess.run(["mkdocs", "build", "--strict", "--config-file", work / "mkdocs.yml"], check=True,
                   capture_output=True, text=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    print(f"{out}/index.html")


try:
    main()
except subprocess.CalledProcessError as error:
    sys.exit(f"{error.cmd[0]} failed:\n{error.stderr or ''}")
