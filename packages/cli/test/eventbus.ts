/** The command, in a folder with files. */
import { type ChildProcess, spawn } from "node:child_process"
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Cli } from "@eventbus/cli"
import { ConfigProvider, Console, Effect, Layer, Stdio } from "effect"

const main = fileURLToPath(new URL("../src/main.ts", import.meta.url))

/** The path of a module in `programs`. */
export const program = (name: string): string => fileURLToPath(new URL(`programs/${name}.ts`, import.meta.url))

/** A file with one binding, `orders`, whose records have one attempt and no tiers. */
export const ordersFile = (bootstrap: ReadonlyArray<string>, topic: string): string => `eventbus:
  clusters:
    default: { brokers: [${bootstrap.map((each) => `"${each}"`).join(", ")}] }
  bindings:
    orders: { topic: ${topic}, group-id: ${topic}, handler: charge, retry: { tier0: { maxAttempts: 1 }, tiers: [] } }
`

export interface Ended {
  /** null when a signal ended it. */
  readonly code: number | null
  readonly out: string
  readonly err: string
}

export interface Running {
  readonly process: ChildProcess
  readonly ended: Promise<Ended>
  /** Its output so far. */
  readonly out: () => string
}

/** As a user runs it: a process with arguments. */
export const start = (folder: string, ...args: ReadonlyArray<string>): Running => {
  const child = spawn(process.execPath, [main, ...args], { cwd: folder, env: { ...process.env, NO_COLOR: "1" } })
  let out = ""
  let err = ""
  child.stdout.on("data", (chunk) => (out += chunk))
  child.stderr.on("data", (chunk) => (err += chunk))
  const ended = new Promise<Ended>((resolve) => child.once("close", (code) => resolve({ code, out, err })))
  return { process: child, ended, out: () => out }
}

/** The command within this process, which takes a twentieth of the time: arguments that name a file of the folder name it there. */
export const eventbus = (folder: string, ...args: ReadonlyArray<string>): Effect.Effect<Ended> =>
  Effect.gen(function* () {
    const lines = { out: "", err: "" }
    const write = (to: keyof typeof lines) => (text: string) => {
      lines[to] += `${text}\n`.replaceAll(`${folder}/`, "")
    }
    const exit = yield* Cli.run("0.0.0").pipe(
      Effect.provideService(Console.Console, { ...globalThis.console, log: write("out"), error: write("err") }),
      Effect.provide(
        Layer.merge(NodeServices.layer, Stdio.layerTest({ args: Effect.succeed(args.map(inFolder(folder))) }))
      ),
      Effect.exit
    )
    const code = yield* Effect.callback<number>((resume) =>
      Cli.teardown(exit, (ended) => resume(Effect.succeed(ended)))
    )
    return { code, ...lines }
  })

/** A command by `--url`, with this credential. */
export const withToken = (credential: string, ...args: ReadonlyArray<string>): Effect.Effect<Ended> =>
  Effect.provideService(
    eventbus("/nowhere", ...args),
    ConfigProvider.ConfigProvider,
    ConfigProvider.fromUnknown({ EVENTBUS_TOKEN: credential })
  )

const inFolder = (folder: string) => (argument: string) =>
  existsSync(join(folder, argument)) ? join(folder, argument) : argument

/** A folder with these files, for as long as the scope. */
export const folderWith = (files: Readonly<Record<string, string>>) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const folder = mkdtempSync(join(tmpdir(), "eventbus-cli-"))
      for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
      return folder
    }),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  )
