/**
 * The configuration that a command works on, and the mistakes in it.
 */
import { Configuration, type Handlers } from "@eventbus/config"
import type { EventBusError } from "@eventbus/core"
import { Effect } from "effect"
import { type CommandFailed, refuse } from "./failures.ts"
import { counted } from "./text.ts"

interface Source {
  readonly file: string
  readonly profile: ReadonlyArray<string>
  /** Whether they fit is checked, too. */
  readonly handlers?: Handlers.Handlers<unknown>
}

/** Without profiles on the command line, those of the environment count. */
export const read = ({
  file,
  profile,
  handlers
}: Source): Effect.Effect<Configuration.Configuration, EventBusError.ConfigurationValidation> =>
  Configuration.load(file, { ...(profile.length > 0 && { profile }), ...(handlers !== undefined && { handlers }) })

/** For commands that need it to be right. */
export const readValid = (source: Source): Effect.Effect<Configuration.Configuration, CommandFailed> =>
  Effect.catchTag(read(source), "ConfigurationValidation", ({ issues }) => refuse(mistakes(source.file, issues)))

/** A line for each, as compilers write them, so that editors find the place. */
export const mistakes = (file: string, issues: ReadonlyArray<EventBusError.ConfigurationIssue>): string =>
  [...issues.map((issue) => line(file, issue)), `${file}: ${counted(issues.length, "mistake")}`].join("\n")

const line = (file: string, { path, found, allowed, at }: EventBusError.ConfigurationIssue): string => {
  const place = [at?.file ?? file, at?.line, at?.column].filter((part) => part !== undefined).join(":")
  return `${place}: ${path === "" ? "" : `${path}: `}found ${found}, allowed is ${allowed}`
}
