/**
 * The command `eventbus` as a value. A program may run it under another name, or beside its own commands.
 *
 * Results go to standard output, everything else to standard error. Exit codes: 0 done; 1 the answer is no; 2 wrong usage; 3 a cluster or a file
 * cannot be reached; 4 done in part; 130 ended by a signal, or because its reader closed the pipe, after a graceful stop.
 */
import { LogFormat } from "@eventbus/core"
import * as Cause from "effect/Cause"
import * as Console from "effect/Console"
import * as CliError from "effect/cli/CliError"
import * as CliOutput from "effect/cli/CliOutput"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Runtime from "effect/Runtime"
import { audit } from "./internal/auditCommand.ts"
import { consoleCommand } from "./internal/console/consoleCommand.ts"
import { dlt } from "./internal/dlt/dltCommand.ts"
import { CommandFailed, exitCodes } from "./internal/failures.ts"
import { fleet } from "./internal/fleetCommand.ts"
import { held } from "./internal/held/heldCommand.ts"
import { parked } from "./internal/held/parkedCommand.ts"
import * as Lifecycle from "./internal/lifecycleCommands.ts"
import { outbox } from "./internal/outbox/outboxCommand.ts"
import * as Output from "./internal/output.ts"
import { plan } from "./internal/planCommand.ts"
import { run as runCommand } from "./internal/runCommand.ts"
import { status } from "./internal/statusCommand.ts"
import { trail } from "./internal/trailCommand.ts"
import { validate } from "./internal/validateCommand.ts"

/** The command with its subcommands validate, plan, run, trail, dlt, held, parked, outbox, audit, console, status, fleet, start, stop, pause and resume. */
export const command = Command.make("eventbus").pipe(
  Command.withDescription("Checks, explains, runs and operates the bindings of a configuration file."),
  Command.withSubcommands([
    ...([validate, plan, runCommand, trail, dlt, held, parked, outbox, audit, consoleCommand] as const),
    ...([status, fleet, Lifecycle.start, Lifecycle.stop, Lifecycle.pause, Lifecycle.resume] as const)
  ])
)

/** Runs the command with the arguments of the process. A failure prints one message. */
export const run = (version: string) =>
  Command.run(command, { version }).pipe(
    Effect.provideService(CliOutput.Presenter, presenter),
    Effect.tapError((error) =>
      error instanceof CommandFailed && error.message !== "" ? Console.error(printable(error.message)) : Effect.void
    ),
    // Nobody reads on: a command that runs for long ends as by a signal.
    Effect.raceFirst(Effect.andThen(Output.readerGone(), Effect.interrupt))
  )

/** The message may quote a record or a server, whose text must not drive the terminal. */
const printable = (message: string): string => message.split("\n").map(LogFormat.oneLine).join("\n")

/** Each character of `-1@5` would be an unknown flag of its own. */
const negativeNumber =
  "an argument is a negative number; allowed is 0 or more, also on both sides of partition@offset, such as 3@17"

/** A wrong command line prints its errors and a hint instead of the whole help page. */
const presenter: CliOutput.Presenter = {
  present: (event) => {
    if (event._tag !== "InvalidInvocation") return CliOutput.defaultPresenter.present(event)
    const negative = event.errors.find((error) => error._tag === "UnrecognizedOption" && /^-\d/.test(error.option))
    const messages = negative === undefined ? event.errors.map(({ message }) => message) : [negativeNumber]
    return Console.error([...messages, `${event.commandPath.join(" ")} --help lists commands and flags`].join("\n"))
  }
}

/**
 * Sets the exit code of the process: 2 for a wrong command line, otherwise that of the failure. It calls back once the output has been written completely, or nobody reads it
 * any more, whatever the code.
 */
export const teardown: Runtime.Teardown = (exit, onExit) => {
  const whenWritten = (code: number) => Output.whenWritten(() => onExit(code))
  return Exit.isFailure(exit) && CliError.isCliError(Cause.squash(exit.cause)) && !Cause.hasInterruptsOnly(exit.cause)
    ? whenWritten(exitCodes.usage)
    : Runtime.defaultTeardown(exit, whenWritten)
}
