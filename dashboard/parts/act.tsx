/** A button that changes something: it says what, asks once more, takes a reason, and shows the command that does the same. */
import { type FormEvent, type ReactNode, useEffect, useId, useRef, useState } from 'react';
import { asProblem } from '../answer.ts';
import { type Role, useMay } from '../session.tsx';
import { Command } from './command.tsx';

type ActProps = {
  /** On the button. */
  readonly name: string;
  readonly needs: Role;
  /** The question. */
  readonly title: string;
  /** What follows from it. */
  readonly children?: ReactNode;
  readonly reason?: 'none' | 'asked' | 'needed';
  readonly isDanger?: boolean;
  readonly isMain?: boolean;
  /** Why it cannot be done now. */
  readonly disabled?: string | null;
  /** Something that the dialog asks for is still missing. */
  readonly isIncomplete?: boolean;
  readonly command: (reason: string) => string;
  readonly does: (reason: string) => Promise<unknown>;
  readonly done?: () => void;
};

export function Act(props: ActProps) {
  const [isOpen, setOpen] = useState(false);
  const may = useMay(props.needs);
  const hindered = may ? (props.disabled ?? null) : `Needs the role ${props.needs}.`;
  return (
    <>
      <button
        type="button"
        className={props.isDanger ? 'danger' : props.isMain ? 'main' : ''}
        disabled={hindered !== null}
        title={hindered ?? undefined}
        onClick={() => setOpen(true)}
      >
        {props.name}
      </button>
      {isOpen && <Confirm {...props} close={() => setOpen(false)} />}
    </>
  );
}

function Confirm(props: ActProps & { readonly close: () => void }) {
  const { title, name, children, reason: wanted = 'none', isDanger = false, command, does, done, close } = props;
  const dialog = useRef<HTMLDialogElement>(null);
  const ids = useId();
  const [reason, setReason] = useState('');
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  useEffect(() => {
    const node = dialog.current;
    node?.showModal();
    return () => node?.close();
  }, []);
  const confirm = (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setProblem(null);
    does(reason.trim()).then(
      () => {
        close();
        done?.();
      },
      (error: unknown) => {
        setBusy(false);
        setProblem(asProblem(error).message);
      },
    );
  };
  const isMissing = (wanted === 'needed' && reason.trim() === '') || props.isIncomplete === true;
  return (
    <dialog ref={dialog} aria-labelledby={`${ids}title`} onCancel={close}>
      <form onSubmit={confirm}>
        <h2 id={`${ids}title`}>{title}</h2>
        {children && <div className="consequence">{children}</div>}
        {wanted !== 'none' && (
          <label className="field">
            <span>Reason{wanted === 'needed' ? '' : ' (stands in the audit log)'}</span>
            <textarea
              value={reason}
              onChange={(event) => setReason(event.target.value)}
              maxLength={2000}
              rows={2}
              required={wanted === 'needed'}
            />
          </label>
        )}
        <p className="label">The same at a terminal</p>
        <Command line={command(reason.trim())} />
        {problem !== null && (
          <p className="failed" role="alert">
            {problem}
          </p>
        )}
        <div className="dialog-buttons">
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button type="submit" className={isDanger ? 'danger' : 'main'} disabled={isBusy || isMissing}>
            {isBusy ? '…' : name}
          </button>
        </div>
      </form>
    </dialog>
  );
}
