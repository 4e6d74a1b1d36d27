# Part of the Hone project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""site.py WORK OUT: builds the documentation site in OUT from docs/, from what TableGen says of dialects and
passes, and from the help of the tools.

Written pages are copied to WORK, generated ones are added there, and MkDocs makes the site, where a broken link is an
error. The order of the pages is FIRST, then the folders by name.
"""

import pathlib
import re
import shutil
import subprocess
import sys

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
LLVM = pathlib.Path("/usr/lib/llvm-22")
FIRST = ["index.md", "guide.md", "commands.md", "architecture.md", "extending.md", "dependencies.md"]


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
    return match[1].strip() if match else path.stem


def navigation(work):
    pages = [{title_of(work / name): name} for name in FIRST if (work / name).exists()]
    rest = sorted(path.relative_to(work) for path in work.rglob("*.md"))
    pages += [{title_of(work / path): str(path)} for path in rest if len(path.parts) == 1 and path.name not in FIRST]
    for folder in sorted({path.parts[0] for path in rest if len(path.parts) > 1}):
        inside = [{title_of(work / path): str(path)} for path in rest if path.parts[0] == folder and len(path.parts) > 1]
        pages.append({folder.replace("-", " ").capitalize(): inside})
    return pages


def main():
    work, out = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(ROOT / "docs", work / "pages")
    pages = work / "pages"
    dialect_pages(pages)
    pass_pages(pages)
    command_page(pages)
    settings = {
        "site_name": "Hone",
        "docs_dir": str(pages),
        "site_dir": str(out),
        "theme": {"name": "mkdocs", "highlightjs": False, "nav_style": "light"},
        "use_directory_urls": False,
        "plugins": ["search"],
        "markdown_extensions": ["tables", "fenced_code", "toc"],
        "nav": navigation(pages),
        "validation": {"links": {"anchors": "warn", "unrecognized_links": "warn"}},
    }
    (work / "mkdocs.yml").write_text(yaml.safe_dump(settings, sort_keys=False, allow_unicode=True))
    subprocess.run(["mkdocs", "build", "--strict", "--quiet", "--config-file", work / "mkdocs.yml"], check=True)
    print(f"{out}/index.html")


try:
    main()
except subprocess.CalledProcessError as error:
    sys.exit(f"{error.cmd[0]} failed:\n{error.stderr or ''}")
