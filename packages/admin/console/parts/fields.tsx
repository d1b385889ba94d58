/** The fields of forms. */
import { useId } from "preact/hooks"

interface FieldProps {
  readonly label: string
  readonly name: string
}

export const Text = ({ label, name }: FieldProps) => {
  const id = useId()
  return (
    <>
      <label for={id}>{label}</label>
      <input id={id} name={name} required maxLength={500} autocomplete="off" />
    </>
  )
}

interface CountProps extends FieldProps {
  readonly value: number
  readonly least: number
}

export const Count = ({ label, name, value, least }: CountProps) => {
  const id = useId()
  return (
    <>
      <label for={id}>{label}</label>
      <input
        id={id}
        name={name}
        type="number"
        min={least}
        max={100_000}
        step={1}
        defaultValue={String(value)}
        required
      />
    </>
  )
}
