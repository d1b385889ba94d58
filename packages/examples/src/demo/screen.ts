/**
 * The output of the demo: a terminal that is redrawn in place, or plain lines without a terminal or when `CI` is set. Only this file uses escape codes.
 */
const style = (code: number) => (text: string) => (isLive ? `\x1b[${code}m${text}\x1b[0m` : text)

/** A terminal that can redraw lines. */
export const isLive: boolean = process.stdout.isTTY === true && !process.env.CI

export const bold = style(1)
export const dim = style(2)
export const red = style(31)
export const green = style(32)
export const yellow = style(33)
export const blue = style(34)
export const magenta = style(35)

export const print = (lines: ReadonlyArray<string>): void => {
  process.stdout.write(lines.map((line) => `${line}\n`).join(""))
}

export interface Canvas {
  /** Replaces the previous drawing. */
  readonly draw: (lines: ReadonlyArray<string>) => void
}

/** A region that starts at the cursor. Lines longer than the terminal are cut off, so that the height of the region is known. */
export const canvas = (): Canvas => {
  let height = 0
  return {
    draw: (lines) => {
      const visible = lines.slice(0, (process.stdout.rows ?? 24) - 1).map((line) => `${line}${clearRestOfLine}\n`)
      // Starts at the first column, since the terminal may have printed ^C.
      const up = height === 0 ? "" : `\r\x1b[${height}A`
      process.stdout.write(up + wrapOff + visible.join("") + wrapOn + clearBelow)
      height = visible.length
    }
  }
}

const clearRestOfLine = "\x1b[K"
const clearBelow = "\x1b[J"
const wrapOff = "\x1b[?7l"
const wrapOn = "\x1b[?7h"
