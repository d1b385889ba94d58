/** OPS-21: the page of the console: one small document, with a policy that lets nothing else in, at any prefix, for everybody. */
import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import { gunzipSync, gzipSync } from "node:zlib"
import { assert, describe, it } from "@effect/vitest"
import { AdminWeb } from "@eventbus/admin"
import { EventBusError } from "@eventbus/core"
import { Effect } from "effect"
import * as WriteConsole from "../scripts/writeConsole.ts"
import { start } from "./api.ts"

const page = (path = "/eventbus/console", headers: Readonly<Record<string, string>> = {}) =>
  Effect.map(start(path.startsWith("/ops") ? { prefix: "/ops/bus" } : {}), ({ web }) => {
    const request = new Request(`http://localhost${path}`, { headers })
    return Effect.promise(() => web.handler(request))
  }).pipe(Effect.flatten)

const textOf = (response: Response) => Effect.promise(() => response.text())

const policyOf = (response: Response): ReadonlyMap<string, string> =>
  new Map(
    response.headers
      .get("content-security-policy")!
      .split("; ")
      .map((directive) => [directive.split(" ")[0]!, directive.slice(directive.indexOf(" ") + 1)])
  )

const sha256 = (text: string): string => `'sha256-${createHash("sha256").update(text).digest("base64")}'`

const hashes = (document: string, tag: string): ReadonlyArray<string> =>
  Array.from(document.matchAll(new RegExp(`<${tag}>(.*?)</${tag}>`, "gs")), ([, text]) => sha256(text!))

describe("OPS-21 the page of the console", () => {
  it.live("is served without a credential, at any prefix, and holds nothing of the program", () =>
    Effect.gen(function* () {
      const response = yield* page()
      assert.strictEqual(response.status, 200)
      assert.strictEqual(response.headers.get("content-type"), "text/html; charset=utf-8")
      const document = yield* textOf(response)
      assert.strictEqual(yield* textOf(yield* page("/ops/bus/console")), document)
      for (const name of ["orders-group", "payments", "/eventbus/", "localhost"]) assert.notInclude(document, name)
    })
  )

  it.live("is 40 KiB at most in all, as gzip, and is sent so to those who take it", () =>
    Effect.gen(function* () {
      const plain = yield* textOf(yield* page())
      const response = yield* page("/eventbus/console", { "accept-encoding": "br, gzip" })
      assert.strictEqual(response.headers.get("content-encoding"), "gzip")
      assert.strictEqual(response.headers.get("vary"), "accept-encoding")
      const zipped = new Uint8Array(yield* Effect.promise(() => response.arrayBuffer()))
      assert.strictEqual(gunzipSync(zipped).toString(), plain)
      assert.isAtMost(zipped.length, 40 * 1_024)
      assert.isAtMost(gzipSync(plain).length, 40 * 1_024)
    })
  )

  it.live(
    "asks for no other file: its policy knows its script and its style by their hashes, and allows no HTML from text",
    () =>
      Effect.gen(function* () {
        const response = yield* page()
        const document = yield* textOf(response)
        const policy = policyOf(response)
        assert.deepStrictEqual(Array.from(policy), [
          ["default-src", "'none'"],
          ["script-src", hashes(document, "script").join(" ")],
          ["style-src", hashes(document, "style").join(" ")],
          ["connect-src", "'self'"],
          ["img-src", "data:"],
          ["base-uri", "'none'"],
          ["form-action", "'none'"],
          ["frame-ancestors", "'none'"],
          ["require-trusted-types-for", "'script'"],
          ["trusted-types", "'none'"]
        ])
        assert.strictEqual(hashes(document, "script").length, 1)
        assert.strictEqual(hashes(document, "style").length, 1)
        const tags = document.replace(/<(script|style)>.*?<\/\1>/gs, "")
        assert.notMatch(tags, /\son\w+=|\sstyle=|\ssrc=/)
        assert.deepStrictEqual(
          Array.from(tags.matchAll(/href="([^"]*)"/g), ([, address]) => address),
          ["data:,"]
        )
        for (const [name, value] of [
          ["x-content-type-options", "nosniff"],
          ["referrer-policy", "no-referrer"],
          ["cross-origin-opener-policy", "same-origin"],
          ["cache-control", "no-cache"]
        ] as const)
          assert.strictEqual(response.headers.get(name), value)
      })
  )

  it.live("a browser that has it gets 304, and no other spelling of its path is a route", () =>
    Effect.gen(function* () {
      const { web, call } = yield* start()
      const ask = (headers: Readonly<Record<string, string>>) =>
        Effect.promise(() => web.handler(new Request("http://localhost/eventbus/console", { headers })))
      const etag = (yield* ask({})).headers.get("etag")!
      const again = yield* ask({ "if-none-match": etag })
      assert.deepStrictEqual([again.status, yield* textOf(again)], [304, ""])
      assert.strictEqual((yield* ask({ "if-none-match": '"other"' })).status, 200)
      assert.strictEqual((yield* call("GET", "/eventbus/console/")).status, 404)
      assert.strictEqual((yield* call("GET", "/EVENTBUS/console")).status, 404)
    })
  )

  it.live("`console: false` leaves it out, and another value is refused", () =>
    Effect.gen(function* () {
      const { call, context } = yield* start({ console: false })
      assert.strictEqual((yield* call("GET", "/eventbus/console")).status, 404)
      const wrong = yield* Effect.exit(
        Effect.provideContext(AdminWeb.make({ console: "no" as unknown as boolean }), context)
      )
      assert.include(String(wrong), "AdminRoutes.console")
      assert.include(String(wrong), EventBusError.ConfigurationValidation.name)
    })
  )

  it("is what `pnpm console:build` makes of the sources", async () => {
    assert.strictEqual(readFileSync(WriteConsole.modulePath, "utf8"), await WriteConsole.moduleText())
  })
})
