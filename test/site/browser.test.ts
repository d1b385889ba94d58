/** The site in a real Chromium: found and opened by keyboard, under a path, from a disk, and as WCAG asks. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { extname, join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { assert, it } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import type { Page } from "playwright-core"
import { afterAll, beforeAll } from "vitest"
import { buildSite } from "../../scripts/site/buildSite.ts"
import { violations } from "../console/axe.ts"
import { browser, opened, problem } from "../console/browser.ts"
import { whenUsable } from "../services/suites.ts"

const types: Readonly<Record<string, string>> = {
  ".html": "text/html",
  ".css": "text/css",
  ".js": "text/javascript",
  ".svg": "image/svg+xml"
}

const out = mkdtempSync(join(tmpdir(), "site-"))

beforeAll(() => {
  if (problem === undefined) buildSite({ root: fileURLToPath(new URL("../..", import.meta.url)), out })
})
afterAll(() => rmSync(out, { recursive: true, force: true }))

/** Serves the site below `/docs/next/`, as a host with several versions does. */
const served: Effect.Effect<string, never, Scope.Scope> = Effect.map(
  Effect.acquireRelease(
    Effect.callback<Server>((resume) => {
      const server = createServer(({ url = "" }, response) => {
        const path = new URL(url, "http://site").pathname
        try {
          if (!path.startsWith("/docs/next/")) throw new Error(path)
          const content = readFileSync(join(out, path.slice("/docs/next/".length)))
          response.writeHead(200, { "content-type": types[extname(path)] ?? "text/plain" }).end(content)
        } catch {
          response.writeHead(404).end()
        }
      })
      server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
    }),
    (server) => Effect.sync(() => server.close().closeAllConnections())
  ),
  (server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}/docs/next`
)

/** Finds a page by its words and opens the first result, which has this title, without a mouse. */
const searchByKeyboard = async (page: Page, words: string, title: string): Promise<string> => {
  await page.keyboard.press("/")
  await page.keyboard.type(words)
  await page.locator("#found li:first-child", { hasText: title }).waitFor()
  await page.keyboard.press("ArrowDown")
  assert.strictEqual(await page.locator("#found a:focus").count(), 1, "an arrow key goes to the first result")
  await page.keyboard.press("Enter")
  await page.waitForURL((url) => !url.pathname.endsWith("/index.html"))
  return page.url()
}

/** A Chromium beside other tests takes its time. */
const testTimeoutMillis = 180_000

const shown = ["index.html", "guide/production.html", "reference/core/RetryPolicy.html"]

whenUsable("RCH-12 the site in Chromium", problem, () => {
  it.live(
    "the search finds a page and opens it by keyboard, under a path of a server and from a disk",
    () =>
      Effect.gen(function* () {
        const host = yield* served
        const { page, complaints } = yield* opened(yield* browser)
        const elsewhere: Array<string> = []
        page.on("request", (request) => {
          if (!request.url().startsWith(host) && !request.url().startsWith("file:")) elsewhere.push(request.url())
        })
        yield* Effect.promise(async () => {
          for (const home of [host, pathToFileURL(out).href]) {
            await page.goto(`${home}/index.html`)
            const title = "Exactly when is a record repeated?"
            const address = await searchByKeyboard(page, "exactly when is a record rep", title)
            assert.strictEqual(address, `${home}/guide/guarantees.html`)
            assert.strictEqual(await page.locator("h1").textContent(), title)
          }
          await page.keyboard.press("/")
          await page.keyboard.type("xyzzyxyzzy")
          await page.getByText("Nothing found").waitFor()
          await page.keyboard.press("Escape")
          assert.isFalse(await page.locator("#found").isVisible())
        })
        assert.deepStrictEqual(elsewhere, [])
        assert.deepStrictEqual(complaints, [])
      }),
    testTimeoutMillis
  )

  it.live(
    "three pages keep the rules of WCAG and are no wider than the screen, light at 360 pixels and dark at 1280",
    () =>
      Effect.gen(function* () {
        const address = yield* served
        const running = yield* browser
        for (const [colorScheme, width] of [
          ["light", 360],
          ["dark", 1280]
        ] as const) {
          const { page } = yield* opened(running, { colorScheme, viewport: { width, height: 800 } })
          yield* Effect.promise(async () => {
            for (const path of shown) {
              await page.goto(`${address}/${path}`)
              assert.isAtMost(Number(await page.evaluate("document.documentElement.scrollWidth")), width, path)
              assert.deepStrictEqual(await violations(page), [], `${path}, ${colorScheme}`)
            }
            const contents = page.getByRole("navigation", { name: "Contents" })
            assert.strictEqual(await contents.isVisible(), width > 800)
            if (width < 800) await page.getByRole("button", { name: "Contents" }).press("Enter")
            assert.isTrue(await contents.isVisible())
          })
        }
      }),
    testTimeoutMillis
  )
})
