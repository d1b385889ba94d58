/** A program as a process: it can be killed, told to stop, and waited for. */
import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { Effect, type Scope } from "effect"
import { encodeTask, type Task } from "./journal.ts"

export interface Exit {
  readonly code: number | null
  readonly signal: string | null
}

type Signal = "SIGTERM" | "SIGKILL" | "SIGSTOP" | "SIGCONT"

export interface Program {
  readonly pid: number | undefined
  /** The newest text of both streams: 200 000 characters at most, so that a process may run for hours. */
  readonly output: () => string
  readonly signal: (name: Signal) => Effect.Effect<void>
  readonly exit: Effect.Effect<Exit>
  /** Sends the signal, and waits until the process is gone. */
  readonly end: (name: Signal) => Effect.Effect<Exit>
}

/** Starts `programs/{file}`. Closing the Scope kills the process if it still runs. */
export const run = (file: string, task: Task): Effect.Effect<Program, never, Scope.Scope> =>
  launch(pathOf(file), encodeTask(task))

/** The path of `programs/{file}`. */
export const pathOf = (file: string): string => fileURLToPath(new URL(`programs/${file}`, import.meta.url))

/** Starts a program that reads its instructions from the variable TASK. Closing the Scope kills the process if it still runs. */
export const launch = (
  path: string,
  task: string,
  nodeOptions: ReadonlyArray<string> = []
): Effect.Effect<Program, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() =>
        spawn(process.execPath, ["--no-warnings", ...nodeOptions, path], {
          env: { ...process.env, TASK: task },
          stdio: ["ignore", "pipe", "pipe"]
        })
      ),
      (child) => Effect.sync(() => child.kill("SIGKILL"))
    ),
    (child) => {
      let output = ""
      for (const stream of [child.stdout, child.stderr]) {
        stream.setEncoding("utf8").on("data", (text: string) => {
          output = `${output}${text}`.slice(-200_000)
        })
      }
      const exited = new Promise<Exit>((resolve) => child.once("close", (code, signal) => resolve({ code, signal })))
      const signal = (name: Signal) => Effect.sync(() => void child.kill(name))
      const exit = Effect.promise(() => exited)
      const end = (name: Signal) => Effect.andThen(signal(name), exit)
      return { pid: child.pid, output: () => output, signal, exit, end }
    }
  )
