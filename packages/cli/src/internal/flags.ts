/**
 * Arguments and flags that several commands share.
 */
import { Argument, Flag } from "effect/cli"

export const file = Argument.String("file").pipe(
  Argument.withDescription("The configuration: YAML, or JSON when its name ends with .json")
)

export const profile = Flag.String("profile").pipe(
  Flag.withAlias("p"),
  Flag.withMetavar("name"),
  Flag.withDescription("Lays file-NAME.yaml over the file; may be repeated. Default: $EVENTBUS_PROFILE"),
  Flag.between(0, 16)
)

export const json = Flag.Boolean("json").pipe(
  Flag.withDescription("Prints one JSON value instead of text"),
  Flag.withDefault(false)
)

export const brokers = Flag.String("brokers").pipe(
  Flag.withAlias("b"),
  Flag.withMetavar("host:port,..."),
  Flag.withDescription("The brokers of cluster `default`, instead of those in the file"),
  Flag.optional
)
