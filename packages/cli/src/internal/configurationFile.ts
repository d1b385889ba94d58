/**
 * Reads the configuration of a command and formats its mistakes.
 */
import { Configuration, type Handlers } from "@eventbus/config"
import type { EventBusError } from "@eventbus/core"
import * as Effect from "effect/Effect"
import { type CommandFailed, refuse } from "./failures.ts"
import { counted } from "./text.ts"

interface Source {
  readonly file: string
  readonly profile: ReadonlyArray<string>
  /** Handlers to check the bindings against. Default: not checked. */
  readonly handlers?: Handlers.Handlers<unknown>
}

/** Reads the file. Without profiles on the command line, `EVENTBUS_PROFILE` applies. */
export const read = ({
  file,
  profile,
  handlers
}: Source): Effect.Effect<Configuration.Configuration, EventBusError.ConfigurationValidation> =>
  Configuration.load(file, { ...(profile.length > 0 && { profile }), ...(handlers !== undefined && { handlers }) })

/** Reads the file and fails when it has a mistake. */
export const readValid = (source: Source): Effect.Effect<Configuration.Configuration, CommandFailed> =>
  Effect.catchTag(read(source), "ConfigurationValidation", ({ issues }) => refuse(mistakes(source.file, issues)))

/** The binding of this name. Fails with the names that the file has. */
export const bindingNamed = <B extends { readonly name: string }>(
  bindings: ReadonlyArray<B>,
  name: string
): Effect.Effect<B, CommandFailed> => {
  const binding = bindings.find((each) => each.name === name)
  return binding === undefined
    ? refuse(`no binding '${name}'; the file has ${bindings.map((each) => each.name).join(", ")}`)
    : Effect.succeed(binding)
}

/** One line for each mistake in the format of compilers, so that editors find the location. */
export const mistakes = (file: string, issues: ReadonlyArray<EventBusError.ConfigurationIssue>): string =>
  [...issues.map((issue) => line(file, issue)), `${file}: ${counted(issues.length, "mistake")}`].join("\n")

const line = (file: string, { path, found, allowed, at }: EventBusError.ConfigurationIssue): string => {
  const location = [at?.file ?? file, at?.line, at?.column].filter((part) => part !== undefined).join(":")
  return `${location}: ${path === "" ? "" : `${path}: `}found ${found}, allowed is ${allowed}`
}
