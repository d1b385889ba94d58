/** The console in a real Chromium, over a program in memory. Without a Chromium its tests are skipped, and one line says what to install. */
import { accessSync, constants } from "node:fs"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { delimiter, join } from "node:path"
import type { AdminWeb } from "@eventbus/admin"
import { Effect, type Scope } from "effect"
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core"

const isExecutable = (path: string): boolean => {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

const names = ["chromium", "chromium-browser", "google-chrome"]

const executable: string | undefined =
  process.env["CHROMIUM"] ??
  (process.env["PATH"] ?? "")
    .split(delimiter)
    .flatMap((folder) => names.map((name) => join(folder, name)))
    .find(isExecutable)

/** Undefined when there is a Chromium. */
export const problem: string | undefined =
  executable === undefined
    ? "No Chromium: install it (apt-get install -y chromium), or set CHROMIUM=/path/to/chromium"
    : undefined

/** Root may start a browser only without its sandbox. */
export const browser: Effect.Effect<Browser, never, Scope.Scope> = Effect.acquireRelease(
  Effect.promise(() =>
    chromium.launch({ executablePath: executable ?? "", args: process.getuid?.() === 0 ? ["--no-sandbox"] : [] })
  ),
  (running) => Effect.promise(() => running.close())
)

/** Serves the API on a free port, and answers its address. */
export const served = (web: AdminWeb.AdminWeb): Effect.Effect<string, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.callback<Server>((resume) => {
        const server = createServer(web.nodeListener)
        server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
      }),
      (server) => Effect.sync(() => server.close().closeAllConnections())
    ),
    (server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  )

/** A page, and everything that it complained about. */
export interface Opened {
  readonly page: Page
  readonly complaints: Array<string>
}

/** A new session of the browser. A refused request is no complaint: the page says it in its own words. */
export const opened = (
  running: Browser,
  options: BrowserContextOptions = {}
): Effect.Effect<Opened, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const context = await running.newContext({ locale: "en", timezoneId: "UTC", ...options })
      const page = await context.newPage()
      const complaints: Array<string> = []
      page.on("pageerror", (error) => complaints.push(String(error)))
      page.on("dialog", (dialog) => {
        complaints.push(`dialog: ${dialog.message()}`)
        void dialog.dismiss()
      })
      page.on("console", (message) => {
        if (message.type() === "error" && !message.text().startsWith("Failed to load resource"))
          complaints.push(message.text())
      })
      return { page, complaints }
    }),
    ({ page }) => Effect.promise(() => page.context().close())
  )
