/**
 * Parses `bootstrap.servers`: host:port, several separated by commas.
 */

const address = /^(\[[0-9a-fA-F:.%]+\]|[^\s,:/[\]]+):(\d{1,5})$/

/** Undefined when the text is empty or one of its parts is not host:port. */
export const parse = (text: string): ReadonlyArray<string> | undefined => {
  const all = text
    .split(",")
    .map((each) => each.trim())
    .filter((each) => each !== "")
  return all.length > 0 && all.every(isAddress) ? all : undefined
}

const isAddress = (text: string): boolean => {
  const port = Number(address.exec(text)?.[2])
  return port >= 1 && port <= 65_535
}
