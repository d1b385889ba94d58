/**
 * The failures of commands: a message on standard error, and an exit code for the kind of failure.
 */
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Runtime from "effect/Runtime"

/** The exit codes of failures. Others: `0` for done, `130` for a graceful stop after a signal. */
export const exitCodes = {
  /** The answer is no: the configuration has mistakes, the cluster lacks something, or the record does not exist. */
  refused: 1,
  /** The command line is wrong: an unknown flag or a missing argument. */
  usage: 2,
  /** A required cluster or file cannot be reached. */
  unavailable: 3,
  /** A part of the work is done: a run has come to its end, and letters of its plan stay; or some process has not answered. */
  partly: 4
} as const

/** A failed command. Only its message is printed; an empty message means that the output says everything. */
export class CommandFailed extends Data.TaggedError("CommandFailed")<{
  readonly message: string
  readonly code: (typeof exitCodes)[keyof typeof exitCodes]
}> {
  override readonly [Runtime.errorExitCode] = this.code
}

export const refuse = (message: string): Effect.Effect<never, CommandFailed> =>
  Effect.fail(new CommandFailed({ message, code: exitCodes.refused }))

export const refuseUsage = (message: string): Effect.Effect<never, CommandFailed> =>
  Effect.fail(new CommandFailed({ message, code: exitCodes.usage }))

/** Fails with the message of a connector error, which is written for people. */
export const unavailable = <A, E extends { readonly message: string }, R>(
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, CommandFailed, R> =>
  Effect.mapError(effect, ({ message }) => new CommandFailed({ message, code: exitCodes.unavailable }))
