// Loads a site in a browser through two caches in a hierarchy, and again with a fresh profile: then all of it
// comes from the first cache, and its page says so.
//
//   node cache.mjs HARVEST    for example ../../target/debug/harvest
//
// Prints one line a check; exits with 1 if a check failed. CHROMIUM names another browser than
// /usr/bin/chromium.

import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createServer as createListener } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const WAIT_MS_MAX = 60_000;
// The child cannot resolve it: so it is the parent that fetches, as for those behind a firewall.
const HOST = "site.invalid";
const IMAGES = 12;

const binary = process.argv[2];
const work = mkdtempSync(join(tmpdir(), "harvest-cache-"));
const processes = [];
let failures = 0;

function report(name, isRight, seen) {
  console.log(`${isRight ? "ok    " : "FAILED"}  ${name}${isRight ? "" : `: ${seen}`}`);
  if (!isRight) failures += 1;
}

function freePort(address) {
  return new Promise((done) => {
    const listener = createListener().listen(0, address, () => {
      const { port } = listener.address();
      listener.close(() => done(port));
    });
  });
}

/** Starts a cache; returns its proxy and its administration, once it listens. */
async function cache(name, address, port, lines) {
  const file = join(work, `${name}.toml`);
  const data = join(work, name);
  const text = [
    `name = "${name}"`,
    `data = "${data}"`,
    `listen = "${address}:${port}"`,
    `admin_listen = "${address}:0"`,
    `icp_listen = "${address}:${port}"`,
    ...lines,
  ];
  writeFileSync(file, `${text.join("\n")}\n`);
  const child = spawn(binary, ["cache", "run", "-c", file], { stdio: ["ignore", "inherit", "inherit"] });
  processes.push(child);
  for (const end = Date.now() + WAIT_MS_MAX; ; ) {
    try {
      await fetch(`http://${address}:${port}/healthz`);
      const admin = readFileSync(join(data, "admin.address"), "utf8").split(" ")[0].trim();
      return { proxy: `http://${address}:${port}`, admin: `http://${admin}/` };
    } catch (error) {
      if (end < Date.now() || child.exitCode !== null) throw new Error(`${name} does not listen: ${error}`);
      await new Promise((done) => setTimeout(done, 100));
    }
  }
}

/** Starts a site of one page with a style, a script and pictures. */
function site() {
  const asked = [];
  const pictures = Array.from({ length: IMAGES }, (_, n) => `<img src="/picture${n}.svg" alt="Picture ${n}">`);
  const page = `<!doctype html><html lang="en"><title>Site</title><link rel="stylesheet" href="/style.css">
    <h1>Site</h1>${pictures.join("")}<script src="/script.js"></script></html>`;
  const picture = '<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10"><rect width="10" height="10"/></svg>';
  const server = createServer((request, response) => {
    asked.push(request.url);
    const { pathname } = new URL(request.url, `http://${HOST}`);
    const known = {
      "/": ["text/html", page],
      "/style.css": ["text/css", "h1 { color: rgb(1, 2, 3) }"],
      "/script.js": ["text/javascript", 'document.title = "Script has run";'],
    };
    const found = known[pathname] ?? (pathname.endsWith(".svg") ? ["image/svg+xml", picture] : null);
    if (!found) return response.writeHead(404).end();
    response.writeHead(200, { "content-type": found[0], "cache-control": "max-age=600" }).end(found[1]);
  });
  return new Promise((done) => {
    server.listen(0, "127.0.0.1", () => done({ server, asked, port: server.address().port }));
  });
}

/** Loads the page with a fresh profile; returns what the browser saw. */
async function load(proxy) {
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", `--proxy-server=${proxy}`, "--proxy-bypass-list=<-loopback>"],
  });
  try {
    const page = await browser.newPage();
    const statuses = new Map();
    page.on("response", (response) => {
      statuses.set(new URL(response.url()).pathname, response.headers()["cache-status"] ?? "");
    });
    await page.goto(`http://${HOST}/`, { waitUntil: "networkidle" });
    const loaded = await page.evaluate(
      () => [...document.images].filter((it) => it.complete && 0 < it.naturalWidth).length,
    );
    const color = await page.evaluate(() => getComputedStyle(document.querySelector("h1")).color);
    const isWhole = loaded === IMAGES && color === "rgb(1, 2, 3)" && (await page.title()) === "Script has run";
    statuses.delete("/favicon.ico");
    return { isWhole, statuses: [...statuses.values()] };
  } finally {
    await browser.close();
  }
}

try {
  const { server, asked, port } = await site();
  const ports = [await freePort("127.0.0.2"), await freePort("127.0.0.3")];
  const allowed = ["[access]", "allow_private = true"];
  const origin = ["[[origin]]", `host = "${HOST}"`, `url = "http://127.0.0.1:${port}/"`];
  const parent = await cache("parent", "127.0.0.2", ports[0], [...allowed, ...origin]);
  const neighbor = ["[[neighbor]]", 'host = "127.0.0.2"', `http_port = ${ports[0]}`, `icp_port = ${ports[0]}`];
  const child = await cache("child", "127.0.0.3", ports[1], [...allowed, ...neighbor, 'kind = "parent"']);

  const first = await load(child.proxy);
  report("a site loads through two caches", first.isWhole, JSON.stringify(first));
  const isOfBoth = (it) => it.includes('"parent"; fwd=') && it.includes('"child"; fwd=');
  report("each answer came through both", first.statuses.every(isOfBoth), first.statuses);
  const before = asked.filter((it) => it !== "/favicon.ico").length;
  report("the site was asked once for each", before === IMAGES + 3, asked);

  const second = await load(child.proxy);
  report("it loads with a fresh profile", second.isWhole, JSON.stringify(second));
  report("all of it from the first cache", second.statuses.every((it) => it.includes('"child"; hit')), second.statuses);
  const after = asked.filter((it) => it !== "/favicon.ico").length;
  report("the site was not asked again", after === before, asked);

  const page = await (await fetch(child.admin, { headers: { accept: "text/html" } })).text();
  const status = await (await fetch(new URL("status", child.admin))).json();
  report("the page of the cache says so", page.includes("child") && IMAGES + 3 <= status.answers.hit, page);
  server.close();
} catch (error) {
  report("the check ran", false, error.stack);
} finally {
  for (const it of processes) it.kill();
  await Promise.all(processes.map((it) => new Promise((done) => (it.exitCode === null ? it.on("exit", done) : done()))));
  rmSync(work, { recursive: true, force: true });
}
process.exit(failures === 0 ? 0 : 1);
