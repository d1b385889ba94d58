/**
 * An example program as a user runs it: a process with an output, signals and an exit code.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { Effect, Schema, type Scope } from "effect"

export class EndedEarly extends Schema.TaggedError<EndedEarly>()("EndedEarly", {
  waitedFor: Schema.String,
  output: Schema.String
}) {
  override get message(): string {
    return `The program ended before it wrote '${this.waitedFor}':\n${this.output}`
  }
}

export interface Program {
  /** Everything written so far, both streams. */
  readonly output: () => string
  /** The lines without those of the log. */
  readonly lines: () => ReadonlyArray<string>
  /** Ends as soon as the output contains `text`. */
  readonly writes: (text: string) => Effect.Effect<void, EndedEarly>
  readonly signal: (name: "SIGTERM" | "SIGINT") => Effect.Effect<void>
  /** The exit code, once it has ended and everything that it wrote has arrived. */
  readonly exit: Effect.Effect<number | null>
}

/** Starts `packages/examples/src/{file}`; what is still running is killed with the Scope. `KAFKA_BROKERS` and `DATABASE_URL` are taken from `env` alone. */
export const start = (
  file: string,
  env: Readonly<Record<string, string>> = {},
  args: ReadonlyArray<string> = []
): Effect.Effect<Program, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => spawnProgram(file, env, args)),
    (child) => Effect.sync(() => child.kill("SIGKILL"))
  ).pipe(Effect.map(program))

const spawnProgram = (
  file: string,
  env: Readonly<Record<string, string>>,
  args: ReadonlyArray<string>
): ChildProcess => {
  const { KAFKA_BROKERS: _, DATABASE_URL: __, ...inherited } = process.env
  const path = fileURLToPath(new URL(`../../packages/examples/src/${file}`, import.meta.url))
  return spawn(process.execPath, [path, ...args], { env: { ...inherited, ...env }, stdio: ["ignore", "pipe", "pipe"] })
}

const program = (child: ChildProcess): Program => {
  let output = ""
  let ended = false
  const listeners = new Set<() => void>()
  const changed = () => {
    for (const listener of listeners) listener()
  }
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (text: string) => {
      output += text
      changed()
    })
  }
  child.once("close", () => {
    ended = true
    changed()
  })

  const when = <A, E>(look: () => Effect.Effect<A, E> | undefined): Effect.Effect<A, E> =>
    Effect.callback((resume) => {
      const listener = () => {
        const found = look()
        if (found === undefined) return
        listeners.delete(listener)
        resume(found)
      }
      listeners.add(listener)
      listener()
      return Effect.sync(() => listeners.delete(listener))
    })

  return {
    output: () => output,
    lines: () => output.split("\n").filter((line) => line !== "" && !/^(\[\d\d:|\s|})/.test(line)),
    writes: (text) =>
      when(() => {
        if (output.includes(text)) return Effect.void
        return ended ? Effect.fail(new EndedEarly({ waitedFor: text, output })) : undefined
      }),
    signal: (name) => Effect.sync(() => child.kill(name)),
    exit: when(() => (ended ? Effect.succeed(child.exitCode) : undefined))
  }
}
