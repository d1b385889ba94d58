/** The log of a bus as lines of Nest's logger. */
import type { LogEntry } from "@eventbus/node"
import { Logger } from "@nestjs/common"

/** The context of the lines is the name of the bus. */
export const make = (context: string): ((entry: LogEntry) => void) => {
  const logger = new Logger(context)
  return (entry) => {
    const { level, error } = entry
    if (level === "error" || level === "fatal")
      logger.error(textOf(entry), error instanceof Error ? error.stack : error)
    else logger[level === "info" ? "log" : level === "trace" ? "verbose" : level](textOf(entry))
  }
}

const textOf = ({ message, annotations }: LogEntry): string =>
  [message, ...Object.entries(annotations).map(([name, value]) => `${name}=${String(value)}`)].join(" ")
