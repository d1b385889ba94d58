/**
 * Parses `bootstrap.servers`: host:port, several separated by commas.
 */
import { Kinds } from "@eventbus/core"

/** Undefined when the text is empty or one of its parts is not host:port. */
export const parse = (text: string): ReadonlyArray<string> | undefined => {
  const all = text
    .split(",")
    .map((each) => each.trim())
    .filter((each) => each !== "")
  return all.length > 0 && all.every(isAddress) ? all : undefined
}

const isAddress = (text: string): boolean => Kinds.address("", text).length === 0
