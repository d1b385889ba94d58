import { execFile } from "node:child_process"
import { Effect } from "effect"

/** A command failed or could not run. `output` is what it printed, or the reason. */
export interface ExecuteFailure {
  readonly command: string
  readonly output: string
}

/** Runs a command to its end and returns what it printed (standard output, then standard error). Interruption kills it. */
export const execute = (command: string, args: ReadonlyArray<string>): Effect.Effect<string, ExecuteFailure> =>
  Effect.callback((resume, signal) => {
    execFile(command, [...args], { signal, maxBuffer: 16 * 1024 * 1024 }, (error, stdout, stderr) => {
      const output = `${stdout}${stderr}`.trim()
      resume(error === null ? Effect.succeed(output) : Effect.fail({ command, output: output || error.message }))
    })
  })
