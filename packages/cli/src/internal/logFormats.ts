/**
 * The forms of log lines that `--log` offers. Text and JSON have one line a record, so that a search finds the whole of it.
 */
import { LogFormat } from "@eventbus/core"
import * as Logger from "effect/Logger"

/** `LogFormat.timedText`, with line breaks of a stack as `\n`. */
const text: Logger.Logger<unknown, string> = Logger.make((line) =>
  LogFormat.timedText.log(line).replaceAll("\n", "\\n")
)

/** The loggers by the value of `--log`. */
export const loggers = {
  text: Logger.withConsoleLog(text),
  json: Logger.withConsoleLog(LogFormat.json),
  pretty: Logger.consolePretty()
}
