/** A sentence in which [[...]] is the number that decided. */
export function Rich({ text }: { text: string }) {
  return (
    <>
      {text.split(/(\[\[.*?\]\])/).map((part, index) =>
        part.startsWith("[[") ? <strong key={index} class="deciding">{part.slice(2, -2)}</strong> : part,
      )}
    </>
  );
}
