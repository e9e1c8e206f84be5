#!/usr/bin/env python3
"""Opens the web pages of build-docs/site in Chromium: no script fails, nothing is missing, every
picture is drawn.

usage: tests/docs/check_site.py ROOT

Exits with 77 where tools/docs has not built the pages, or where there is no Chromium."""
import functools
import http.server
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading

DRIVER = "keel-driver.html"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FIRST_OF_REFERENCE = ("api/index.html", "cpp/index.html", "keel_judge.html")
# Loads one page after the other in a frame and writes what is wrong into its own body.
SCRIPT = """<body><script>
const pages = PAGES, problems = [];
async function look(page) {
  const frame = document.createElement("iframe");
  frame.style.width = "1000px";
  const loaded = new Promise(done => { frame.onload = done; });
  frame.src = page;
  document.body.append(frame);
  await loaded;
  const text = frame.contentDocument;
  if (!text.title) problems.push(page + ": no title");
  for (const picture of text.images)
    if (!picture.complete || picture.naturalWidth === 0)
      problems.push(page + ": no picture " + picture.getAttribute("src"));
  frame.remove();
}
(async () => {
  for (const page of pages) await look(page);
  document.body.textContent = "looked at " + pages.length + "\\n" + problems.join("\\n") + "\\nend";
})();
</script></body>"""
FAILED = re.compile(r'CONSOLE.*"((?:Uncaught|Failed to load resource)[^"]*)", source: ([^ ]*)')


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves the pages, and the driver beside them."""

    def __init__(self, *arguments, driver, **options):
        self.driver = driver
        super().__init__(*arguments, **options)

    def log_message(self, *arguments):
        pass

    def do_GET(self):
        if self.path == f"/{DRIVER}":
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(self.driver)
        else:
            super().do_GET()


def pages_of(site):
    """Every page that MkDocs made; of the reference, which other programs made, the first ones."""
    for path in sorted(site.rglob("*.html")):
        name = path.relative_to(site).as_posix()
        if "/api/" not in f"/{name}" or name.endswith(FIRST_OF_REFERENCE):
            yield f"/{name}"


def problems_of(site, browser):
    pages = list(pages_of(site))
    driver = SCRIPT.replace("PAGES", json.dumps(pages)).encode()
    handler = functools.partial(Quiet, directory=str(site), driver=driver)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as profile:
        done = subprocess.run(
            [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}",
             "--enable-logging=stderr", "--virtual-time-budget=600000", "--dump-dom",
             f"http://127.0.0.1:{server.server_port}/{DRIVER}"],
            capture_output=True, text=True, check=False, timeout=600)
    server.shutdown()
    found = re.search(r"looked at (\d+)\n(.*)\nend", done.stdout, re.DOTALL)
    if not found or int(found[1]) != len(pages):
        yield f"Chromium did not look at all {len(pages)} pages: {done.stdout[-300:]!r}"
    else:
        yield from filter(None, found[2].split("\n"))
    yield from (f"{source}: {message}" for message, source in FAILED.findall(done.stderr)
                if "favicon" not in source)


def main():
    site = pathlib.Path(sys.argv[1]) / "build-docs/site"
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if not (site / "index.html").is_file() or browser is None:
        reason = "tools/docs has not built them" if browser else "no Chromium"
        print(f"web pages: skipped: {reason}")
        return 77
    problems = list(problems_of(site, browser))
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
