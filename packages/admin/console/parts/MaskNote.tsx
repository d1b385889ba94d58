/** Says that the program hides parts of a record. */
const notes = {
  applied: "The program shows the record as its mask leaves it.",
  failed: "The mask of the program failed, so key, value and headers are hidden. The log says why."
} as const

/** Nothing where the program has no mask. */
export const MaskNote = ({ mask }: { readonly mask: keyof typeof notes | undefined }) =>
  mask === undefined ? null : <p class={mask === "failed" ? "problem" : "dim"}>{notes[mask]}</p>
