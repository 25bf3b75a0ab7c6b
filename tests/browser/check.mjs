// Checks the pages of a running broker in a browser: accessibility in light and dark, keyboard only, no
// script, narrow screens.
//
//   node check.mjs BASE ADMIN LINK TOKEN REGISTRY EVERYWHERE REGISTRAR
//                      for example http://127.0.0.1:8501/ http://127.0.0.1:9501/ http://…/session/… 3f0c… http://…/ http://…/ http://…/
//
// The broker at BASE must have at least three objects. ADMIN is the admin listener of the same or another
// broker, which must have a source that answers, a settings file, and the view "documents"; TOKEN is its
// administrator's. LINK is a one-time link of the `harvest up` at BASE. EVERYWHERE is a broker that is listed at
// REGISTRY alone, whose admin listener is REGISTRAR. Prints one line a check; exits with 1 if a check failed, with 2 if the browser or a daemon cannot be
// reached. CHROMIUM names another browser than /usr/bin/chromium.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const base = process.argv[2];
const admin = process.argv[3];
const link = process.argv[4];
const token = process.argv[5];
const registry = process.argv[6];
const everywhere = process.argv[7];
const registrar = process.argv[8];
if (!base || !admin || !link || !token) {
  console.error("usage: node check.mjs BASE ADMIN LINK TOKEN");
  process.exit(2);
}

const WAIT_MS_MAX = 15_000;
// Most tab stops that are checked: results with facets have about sixty.
const TABS_MAX = 200;
const wide = { width: 1200, height: 800 };
const phone = { width: 390, height: 780 };
const narrow = { width: 360, height: 640 };

let failures = 0;

function report(name, problems) {
  if (problems.length === 0) {
    console.log(`ok      ${name}`);
    return;
  }
  failures += 1;
  console.log(`FAILED  ${name}`);
  for (const problem of problems) console.log(`        ${problem}`);
}

/** Runs one check; an exception is a failure too. */
async function check(name, run) {
  try {
    report(name, (await run()) ?? []);
  } catch (error) {
    report(name, [String(error.message ?? error).split("\n").slice(0, 6).join(" | ")]);
  }
}

const views = (query = "") => new URL(`views${query}`, admin).href;
const freshness = (query = "") => new URL(`freshness${query}`, admin).href;

/** Waits until the change rate of a source is known, as the plan needs it. */
async function planned() {
  for (const end = Date.now() + WAIT_MS_MAX; Date.now() < end; ) {
    const response = await fetch(freshness("?format=json"));
    if (0 < (await response.json()).sources_planned) return;
    await new Promise((done) => setTimeout(done, 100));
  }
  throw new Error(`no source of ${admin} has a known rate`);
}

/** Waits until the second broker is listed with what it has, and found by itself. */
async function listed() {
  for (const end = Date.now() + WAIT_MS_MAX; Date.now() < end; ) {
    const found = await (await fetch(new URL("api/search?q=harvest&scope=everywhere", everywhere))).json();
    const servers = await (await fetch(new URL("api/servers", registry))).json();
    if (0 < found.total && found.everywhere && servers.length === 1) return;
    await new Promise((done) => setTimeout(done, 100));
  }
  throw new Error(`the broker ${everywhere} is not listed at ${registry}`);
}

const address = (path) => new URL(path, base).href;

async function withPage(browser, options, run) {
  const context = await browser.newContext({ viewport: wide, ...options });
  context.setDefaultTimeout(WAIT_MS_MAX);
  const page = await context.newPage();
  const complaints = [];
  page.on("pageerror", (error) => complaints.push(`script error: ${error.message}`));
  page.on("console", (message) => {
    // Some checks request pages with a status above 399.
    if (message.type() === "error" && !message.text().includes("status of 4")) {
      complaints.push(`console: ${message.text()}`);
    }
  });
  page.on("requestfailed", (request) => complaints.push(`request failed: ${request.url()}`));
  try {
    return await run(page, complaints);
  } finally {
    await context.close();
  }
}

/** Returns every kind of page: its name, its path and its status. */
async function kinds(browser) {
  const [summary, like] = await withPage(browser, {}, async (page) => {
    await page.goto(address("?q=harvest&limit=1"));
    const href = (kind) => page.locator(`.meta a${kind}`).last().getAttribute("href");
    return [await href('[href*="object?"]'), await href('[href*="like="]')];
  });
  return [
    ["the query page", "", 200],
    ["results", "?q=*&limit=2&offset=2", 200],
    ["results with a filter", await firstFacet(browser), 200],
    ["nothing found", "?q=zqxjkvbzzqx&type=HTML", 200],
    ["a query read as words", `?q=${encodeURIComponent("title:(a OR")}`, 200],
    ["a misspelled query", "?q=harvst+zqxjkvbzzqx", 200],
    ["a bad query", "?q=(", 400],
    ["a missing page", "no/such/page", 404],
    ["a missing object", "object?oid=0%3Ax", 404],
    ["an object", summary, 200],
    ["objects like one", like, 200],
    ["the overview of the administration", admin, 200],
    ["freshness", freshness(), 200],
    ["freshness, previewed", freshness("?theta=0.95"), 200],
    ["freshness, another policy previewed", freshness("?price=100"), 200],
    ["freshness, a bad aim", freshness("?theta=2&interval=x"), 400],
    ["views", views(), 200],
    ["views, one to change", views("?edit=documents#edit"), 200],
    ["views, one tried", views("?name=markdown&title=In+Markdown&within=documents&query=type%3AMarkdown"), 200],
    ["views, a bad query", views("?name=A&title=&within=none&query=%28x"), 400],
    ["views, one to remove", views("/removing?name=documents"), 200],
    ["results of all brokers", new URL("?q=harvest&scope=everywhere", everywhere).href, 200],
    ["results that no broker has", new URL("?q=zqxjkvbzzqx&scope=everywhere", everywhere).href, 200],
    ["the servers of a registry", new URL("servers", registry).href, 200],
    ["the servers of a registry, to decide about", new URL("servers", registrar).href, 200],
    ["a missing page of the admin", new URL("no/such/page", admin).href, 404],
  ];
}

async function firstFacet(browser) {
  return withPage(browser, {}, async (page) => {
    await page.goto(address("?q=*&limit=2"));
    return page.locator(".facets.wide a").first().getAttribute("href");
  });
}

async function accessible(page) {
  await page.evaluate(axeSource);
  const found = await page.evaluate(async () => {
    // The rules of WCAG 2.2 A and AA, and the best practices of axe.
    const result = await globalThis.axe.run(document, {
      runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
      resultTypes: ["violations"],
    });
    return result.violations.map((it) => {
      const nodes = it.nodes.slice(0, 3).map((node) => `${node.target.join(" ")}: ${node.failureSummary}`);
      return `${it.id} (${it.impact}): ${nodes.join(" || ").replaceAll("\n", " ")}`;
    });
  });
  return found;
}

/** Returns the problems that no page may have. */
async function sound(page, complaints) {
  const problems = await page.evaluate(() => {
    const found = [];
    if (document.querySelectorAll("h1").length !== 1) found.push("not exactly one h1");
    if (!document.documentElement.lang) found.push("no language");
    if (!document.title.trim()) found.push("no title");
    if (document.querySelector("script")) found.push("a script");
    if (document.querySelector("[style]")) found.push("an inline style, which the policy forbids");
    const style = getComputedStyle(document.querySelector("header.site"));
    if (style.borderBottomWidth !== "1px") found.push("the style sheet does not apply");
    for (const id of document.querySelectorAll("[id]")) {
      if (document.querySelectorAll(`#${CSS.escape(id.id)}`).length !== 1) found.push(`id ${id.id} twice`);
    }
    return found;
  });
  return problems.concat(complaints);
}

async function unfold(page) {
  await page.evaluate(() => document.querySelectorAll("details").forEach((it) => (it.open = true)));
}

async function narrowEnough(page) {
  await unfold(page);
  const [has, shows] = await page.evaluate(() => {
    const { scrollWidth, clientWidth } = document.documentElement;
    return [scrollWidth, clientWidth];
  });
  return has <= shows ? [] : [`${has} pixels of content in ${shows}`];
}

async function checkPages(browser, pages) {
  for (const [name, path, status] of pages) {
    for (const colorScheme of ["light", "dark"]) {
      for (const [device, viewport] of [["wide", wide], ["phone", phone]]) {
        await check(`${name}, ${colorScheme}, ${device}: accessible, sound`, () =>
          withPage(browser, { colorScheme, viewport }, async (page, complaints) => {
            const response = await page.goto(address(path));
            const problems = response.status() === status ? [] : [`status ${response.status()}`];
            // On the phone, with all details unfolded.
            if (device === "phone") await unfold(page);
            return problems.concat(await sound(page, complaints), await accessible(page));
          }));
      }
    }
    await check(`${name}, 360 pixels wide: no scrolling sideways`, () =>
      withPage(browser, { viewport: narrow }, async (page) => {
        await page.goto(address(path));
        return narrowEnough(page);
      }));
  }
}

/** Tabs through a page; returns one entry a stop. */
async function tabStops(page) {
  const stops = [];
  for (let i = 0; i < TABS_MAX; i += 1) {
    await page.keyboard.press("Tab");
    const stop = await page.evaluate(() => {
      const it = document.activeElement;
      if (!it || it === document.body) return null;
      const style = getComputedStyle(it);
      const box = it.getBoundingClientRect();
      const kinds = {
        skip: ".skip", brand: ".brand", box: "input[type=search]", search: ".search button", help: ".help summary",
        facet: ".facets a", chip: ".chips a", sort: ".sort select", sortButton: ".sort button", hit: ".hits h3 a",
        summary: ".meta a", page: ".pages a", foot: "footer a", chart: ".chart-box", slider: "input[type=range]", policy: "#policy",
      };
      const kind = Object.keys(kinds).find((kind) => it.matches(kinds[kind])) ?? it.outerHTML.slice(0, 80);
      return { kind, marked: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2, seen: box.width > 0 && box.height > 0 };
    });
    if (!stop) break;
    stops.push(stop);
  }
  return stops;
}

function inOrder(stops, expected) {
  let from = 0;
  const problems = [];
  for (const kind of expected) {
    const at = stops.findIndex((stop, i) => from <= i && stop.kind === kind);
    if (at < 0) problems.push(`${kind} is not reached after ${expected[expected.indexOf(kind) - 1] ?? "the start"}`);
    else from = at;
  }
  for (const stop of stops.filter((stop) => !stop.marked)) problems.push(`the focus is not marked on ${stop.kind}`);
  for (const stop of stops.filter((stop) => !stop.seen)) problems.push(`the focus is on something unseen: ${stop.kind}`);
  return problems;
}

async function keyboard(browser) {
  await check("keyboard: the box has the focus; a query typed and entered is answered", () =>
    withPage(browser, {}, async (page) => {
      await page.goto(address(""));
      // The browser sets the focus with its next frame, perhaps after the page is loaded.
      await page.waitForFunction(() => document.activeElement?.id === "q");
      await page.keyboard.type("*");
      await page.keyboard.press("Enter");
      await page.locator(".hits h3 a").first().waitFor();
      return [];
    }));
  await check("keyboard: Tab reaches box, facets, sorting, results, pages in this order, all marked", () =>
    withPage(browser, {}, async (page) => {
      await page.goto(address("?q=*&limit=2"));
      const stops = await tabStops(page);
      return inOrder(stops, ["skip", "brand", "box", "search", "help", "facet", "sort", "sortButton", "hit", "summary", "page", "foot"]);
    }));
  await check("keyboard: on a phone the folded facets open with Enter", () =>
    withPage(browser, { viewport: phone }, async (page) => {
      await page.goto(address("?q=*&limit=2"));
      await page.locator(".facets.folded summary").focus();
      await page.keyboard.press("Enter");
      await page.locator(".facets.folded a").first().waitFor({ state: "visible" });
      return inOrder(await tabStops(page), ["facet", "sort", "hit", "page"]);
    }));
  await check("keyboard: the skip link leads to the content", () =>
    withPage(browser, {}, async (page) => {
      await page.goto(address("?q=*&limit=2"));
      await page.keyboard.press("Tab");
      await page.keyboard.press("Enter");
      const focused = await page.evaluate(() => document.activeElement?.id);
      return focused === "main" ? [] : [`the focus is on ${focused}`];
    }));
}

async function withoutScript(browser) {
  const options = { javaScriptEnabled: false };
  const query = (page) => new URL(page.url()).searchParams;
  await check("no script: search, narrow down, sort, page on, read a summary", () =>
    withPage(browser, options, async (page) => {
      await page.goto(address(""));
      await page.fill("#q", "*");
      await page.click(".search button");
      await page.locator(".hits h3 a").first().waitFor();
      await page.goto(address("?q=*&limit=1"));
      await page.locator(".facets.wide a").first().click();
      await page.locator(".chips a").first().waitFor();
      const filters = ["type", "host", "gatherer", "year"].filter((name) => query(page).has(name));
      await page.selectOption("#sort", "size");
      await page.click(".sort button");
      await page.waitForURL(/sort=size/);
      const problems = filters.length === 1 && query(page).has(filters[0]) ? [] : ["sorting lost the filter"];
      await page.locator(".chips a").first().click();
      await page.locator("a[rel=next]").first().click();
      await page.waitForURL(/offset=1/);
      if (query(page).get("sort") !== "size") problems.push("paging lost the order");
      await page.locator(".meta a").first().click();
      await page.locator(".facts-list dt").first().waitFor();
      if (await page.locator(".facts-table th").first().isVisible()) problems.push("technical attributes are not folded");
      await page.locator(".fold > summary").last().click();
      await page.locator(".facts-table th").first().waitFor();
      await page.click(".back a");
      await page.locator(".hits h3 a").first().waitFor();
      if (query(page).get("offset") !== "1") problems.push("the way back leads to other results");
      return problems;
    }));
  for (const query of ["title:(a OR", "("]) await check(`no script: the bad query ${query} keeps its text and points at the spot`, () =>
    withPage(browser, options, async (page) => {
      await page.goto(address(`?q=${encodeURIComponent(query)}`));
      const problems = [];
      if ((await page.inputValue("#q")) !== query) problems.push("the text is gone");
      if (!(await page.locator(".wrong pre b").innerText()).includes("^")) problems.push("no caret");
      if ((await page.getAttribute("#q", "aria-describedby")) !== "wrong") problems.push("the box does not name the message");
      return problems;
    }));
}

async function freshnessByHand(browser) {
  const preview = (page) => page.locator("#preview").innerText();
  await check("freshness, keyboard: the slider is moved and previewed", () =>
    withPage(browser, {}, async (page) => {
      await page.goto(freshness());
      await page.locator("#theta").focus();
      const before = Number(await page.inputValue("#theta"));
      for (let i = 0; i < 10; i += 1) await page.keyboard.press("ArrowRight");
      // Two tabs lead past the policy to the button.
      await page.keyboard.press("Tab");
      await page.keyboard.press("Tab");
      await page.keyboard.press("Enter");
      await page.waitForURL(/theta=/);
      const [chosen, shown] = [Number(new URL(page.url()).searchParams.get("theta")), await preview(page)];
      const problems = Math.abs(chosen - before - 0.01) < 1e-6 ? [] : [`${before} became ${chosen}`];
      if (!shown.includes(`θ = ${chosen}`)) problems.push(`not in words: ${shown}`);
      if (Number(await page.inputValue("#theta")) !== chosen) problems.push("the slider went back");
      return problems;
    }));
  await check("freshness, keyboard: Tab reaches chart, both sliders and the foot, all marked", () =>
    withPage(browser, {}, async (page) => {
      await page.goto(freshness("?price=100"));
      return inOrder(await tabStops(page), ["skip", "brand", "chart", "slider", "policy", "slider", "foot"]);
    }));
  await check("freshness, no script: a link previews, sorting keeps it, other policies have forms", () =>
    withPage(browser, { javaScriptEnabled: false }, async (page) => {
      const problems = [];
      await page.goto(freshness());
      await page.locator(".try .chips a", { hasText: "98" }).first().click();
      await page.waitForURL(/theta=0.98/);
      if (!(await preview(page)).includes("θ = 0.98")) problems.push("the link previews nothing");
      const lines = (await page.locator(".lines").allInnerTexts()).join("\n");
      for (const part of ["tune -c broker.toml --policy oap --theta 0.98", "theta = 0.98"]) {
        if (!lines.includes(part)) problems.push(`it does not say ${part}`);
      }
      await page.locator(".chips a", { hasText: "By name" }).click();
      await page.waitForURL(/theta=0.98.*sort=name/);
      await page.click(".try summary");
      await page.fill("#pulls", "120");
      await page.locator("#pulls").press("Enter");
      await page.waitForURL(/pulls_per_hour=120/);
      if (!(await preview(page)).includes("120")) problems.push("the budget previews nothing");
      await page.fill("#interval", "soon");
      await page.locator("#interval").press("Enter");
      await page.waitForURL(/interval=soon/);
      if ((await page.inputValue("#interval")) !== "soon") problems.push("the text is gone");
      const named = await page.getAttribute("#interval", "aria-describedby");
      if (named !== "interval-wrong" || !(await page.locator("#interval-wrong").innerText())) {
        problems.push("the field does not name the message");
      }
      return problems;
    }));
}

async function viewsByHand(browser) {
  await check("views, keyboard, no script: one is tried, corrected, saved with the token, and removed", () =>
    withPage(browser, { javaScriptEnabled: false }, async (page) => {
      const problems = [];
      await page.goto(views());
      await page.locator("#name").focus();
      await page.keyboard.type("by-hand");
      await page.keyboard.press("Tab");
      await page.keyboard.type("By hand");
      await page.keyboard.press("Tab");
      await page.keyboard.press("Tab");
      await page.keyboard.type("(harvest");
      await page.keyboard.press("Enter");
      await page.waitForURL(/query=/);
      if ((await page.inputValue("#query")) !== "(harvest") problems.push("the text is gone");
      const named = await page.getAttribute("#query", "aria-describedby");
      if (!named.split(" ").includes("query-wrong")) problems.push("the field does not name the message");
      await page.fill("#query", "harvest");
      await page.locator("#query").press("Enter");
      await page.locator("#token").fill(token);
      if ((await page.locator(".samples li").count()) === 0) problems.push("the trial shows no objects");
      await page.locator("#token").press("Enter");
      await page.waitForURL(/saved=by-hand/);
      await page.goto(views("/removing?name=by-hand"));
      await page.fill("#token", token);
      await page.keyboard.press("Enter");
      await page.waitForURL(/removed=by-hand/);
      if ((await page.locator("ul.views a", { hasText: "By hand" }).count()) !== 0) problems.push("it is there still");
      return problems;
    }));
}

/** Comes by the one-time link, which is good for a minute, and opens a found file. */
async function opening(browser) {
  const results = address("?q=*&limit=2");
  await check("opening: a browser without the cookie has no buttons", () =>
    withPage(browser, {}, async (page) => {
      await page.goto(results);
      return (await page.locator("form.open").count()) === 0 ? [] : ["there is a button"];
    }));
  await check("opening: by the link, the keyboard opens a file, and the page stays", () =>
    withPage(browser, {}, async (page, complaints) => {
      await page.goto(link);
      const problems = page.url() === base ? [] : [`the link leads to ${page.url()}`];
      await page.goto(results);
      problems.push(...(await accessible(page)));
      const button = page.locator("form.open button").first();
      await button.focus();
      const answer = page.waitForResponse((it) => it.request().method() === "POST");
      await page.keyboard.press("Enter");
      const status = (await answer).status();
      if (status !== 204) problems.push(`the answer is ${status}`);
      if (page.url() !== results) problems.push(`the page became ${page.url()}`);
      return [...problems, ...complaints.filter((it) => it.startsWith("console"))];
    }));
}

let browser;
try {
  await planned();
  await listed();
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-quic", "--disable-component-update", "--disable-background-networking"],
  });
  await opening(browser);
  const pages = await kinds(browser);
  await checkPages(browser, pages);
  await keyboard(browser);
  await withoutScript(browser);
  await freshnessByHand(browser);
  await viewsByHand(browser);
} catch (error) {
  console.error(`cannot look at ${base}: ${error.message}`);
  failures = -1;
} finally {
  await browser?.close();
}
if (failures < 0) process.exit(2);
console.log(failures === 0 ? "all checks passed" : `${failures} checks failed`);
process.exit(failures === 0 ? 0 : 1);
