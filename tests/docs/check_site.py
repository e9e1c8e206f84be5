#!/usr/bin/env python3
"""Opens the web pages of build-docs/site in Chromium: no script fails, nothing is missing, every
picture is drawn.

usage: tests/docs/check_site.py ROOT

Exits with 77 where tools/docs has not built the pages, or where there is no Chromium."""
import functools
import http.server
import json
import pathlib
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import threading

DRIVER = "keel-driver.html"
SECONDS = 600
OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0",
           "--enable-logging=stderr")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FIRST_OF_REFERENCE = ("api/index.html", "cpp/index.html", "keel_judge.html")
# Loads one page after the other in a frame and sends what is wrong to the server.
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
  await fetch(location, {method: "POST", body: JSON.stringify(problems)});
})();
</script></body>"""
FAILED = re.compile(r'CONSOLE.*"((?:Uncaught|Failed to load resource)[^"]*)", source: ([^ ]*)')


class Server(http.server.SimpleHTTPRequestHandler):
    """Serves the pages and the driver beside them, and takes what the driver has found."""

    def __init__(self, *arguments, driver, answer, **options):
        self.driver, self.answer = driver, answer
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

    def do_POST(self):
        self.answer.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()


def pages_of(site):
    """Every page that MkDocs made; of the reference, which other programs made, the first ones."""
    for path in sorted(site.rglob("*.html")):
        name = path.relative_to(site).as_posix()
        if "/api/" not in f"/{name}" or name.endswith(FIRST_OF_REFERENCE):
            yield f"/{name}"


def problems_of(site, browser):
    answer = queue.Queue()
    driver = SCRIPT.replace("PAGES", json.dumps(list(pages_of(site)))).encode()
    handler = functools.partial(Server, directory=str(site), driver=driver, answer=answer)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, \
            open(f"{folder}/log", "w+", encoding="utf-8") as log:
        with subprocess.Popen([browser, *OPTIONS, f"--user-data-dir={folder}/profile",
                               f"http://127.0.0.1:{server.server_port}/{DRIVER}"],
                              stdout=subprocess.DEVNULL, stderr=log) as process:
            try:
                yield from answer.get(timeout=SECONDS)
            except queue.Empty:
                yield f"Chromium did not look at all pages within {SECONDS} s"
            process.terminate()
        log.seek(0)
        yield from (f"{source}: {message}" for message, source in FAILED.findall(log.read())
                    if "favicon" not in source)
    server.shutdown()


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
