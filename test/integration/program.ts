/** A program of this folder as a process: it can be killed, told to stop, and waited for. */
import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { Effect, type Scope } from "effect"
import { encodeTask, type Task } from "./journal.ts"

export interface Exit {
  readonly code: number | null
  readonly signal: string | null
}

export interface Program {
  readonly pid: number | undefined
  /** Both streams, so far. */
  readonly output: () => string
  readonly signal: (name: "SIGTERM" | "SIGKILL" | "SIGSTOP" | "SIGCONT") => Effect.Effect<void>
  readonly exit: Effect.Effect<Exit>
}

/** Starts `programs/{file}`. Closing the Scope kills the process if it still runs. */
export const run = (file: string, task: Task): Effect.Effect<Program, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() =>
        spawn(process.execPath, ["--no-warnings", fileURLToPath(new URL(`programs/${file}`, import.meta.url))], {
          env: { ...process.env, TASK: encodeTask(task) },
          stdio: ["ignore", "pipe", "pipe"]
        })
      ),
      (child) => Effect.sync(() => child.kill("SIGKILL"))
    ),
    (child) => {
      let output = ""
      for (const stream of [child.stdout, child.stderr]) {
        stream.setEncoding("utf8").on("data", (text: string) => {
          output += text
        })
      }
      const exited = new Promise<Exit>((resolve) => child.once("close", (code, signal) => resolve({ code, signal })))
      return {
        pid: child.pid,
        output: () => output,
        signal: (name) => Effect.sync(() => void child.kill(name)),
        exit: Effect.promise(() => exited)
      }
    }
  )
