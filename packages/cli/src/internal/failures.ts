/**
 * How a command ends that cannot do what it was asked: with a message on standard error, and an exit code that says of what kind it is.
 */
import { Data, Effect, Runtime } from "effect"

/** The exit code of the process. `0`: done. `130`: ended by a signal, after everything was finished. */
export const exitCodes = {
  /** The answer is no: mistakes in the configuration, something is missing on the cluster, no such record. */
  refused: 1,
  /** The command line itself: an unknown flag, a missing argument. */
  usage: 2,
  /** A cluster or a file that is needed cannot be reached. */
  unavailable: 3
} as const

/** The message alone is printed. It is empty when everything has been said. */
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

/** The message of an error of the connector is made for people. */
export const unavailable = <A, E extends { readonly message: string }, R>(
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, CommandFailed, R> =>
  Effect.mapError(effect, ({ message }) => new CommandFailed({ message, code: exitCodes.unavailable }))
