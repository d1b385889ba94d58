/**
 * The command `eventbus`, as a value: a program may run it under a name, or with commands, of its own.
 *
 * Results go to standard output, everything else to standard error. Exit codes: 0 done; 1 the answer is no; 2 wrong usage; 3 a cluster or a file cannot be
 * reached; 130 ended by a signal, after everything was finished.
 */
import { Cause, Console, Effect, Exit, Runtime } from "effect"
import { CliError, CliOutput, Command } from "effect/cli"
import { CommandFailed, exitCodes } from "./internal/failures.ts"
import { plan } from "./internal/planCommand.ts"
import { run as runCommand } from "./internal/runCommand.ts"
import { trail } from "./internal/trailCommand.ts"
import { validate } from "./internal/validateCommand.ts"

export const command = Command.make("eventbus").pipe(
  Command.withDescription("Checks, explains and runs the bindings of a configuration file."),
  Command.withSubcommands([validate, plan, runCommand, trail])
)

/** Runs it with the arguments of the process. A failure is reported in one message. */
export const run = (version: string) =>
  Command.run(command, { version }).pipe(
    Effect.provideService(CliOutput.Presenter, presenter),
    Effect.tapError((error) =>
      error instanceof CommandFailed && error.message !== "" ? Console.error(error.message) : Effect.void
    )
  )

/** A wrong command line gets its errors and a hint; the help page is for those who ask for it. */
const presenter: CliOutput.Presenter = {
  present: (event) => {
    if (event._tag !== "InvalidInvocation") return CliOutput.defaultPresenter.present(event)
    const messages = event.errors.map(({ message }) => message)
    return Console.error([...messages, `${event.commandPath.join(" ")} --help says what there is`].join("\n"))
  }
}

/** The exit code of the process. */
export const teardown: Runtime.Teardown = (exit, onExit) =>
  Exit.isFailure(exit) && CliError.isCliError(Cause.squash(exit.cause)) && !Cause.hasInterruptsOnly(exit.cause)
    ? onExit(exitCodes.usage)
    : Runtime.defaultTeardown(exit, onExit)
