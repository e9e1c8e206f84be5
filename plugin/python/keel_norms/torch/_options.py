"""Constructors of modules whose wrong arguments are named, with what the module takes."""
import difflib
import functools
import inspect


def named(init, **other_names):
    """The constructor `init`, which gets its arguments by name. One that it does not have is an
    error with the nearest that it has. `other_names` are further names of options, each with the
    option and with what makes the option's value of its own."""
    signature = inspect.signature(init)

    @functools.wraps(init)
    def checked(self, *arguments, **options):
        for other, (name, value_from) in other_names.items():
            if other in options:
                _expect_one(self, signature, options, name, other)
                options[name] = value_from(options.pop(other))
        try:
            bound = signature.bind(self, *arguments, **options)
        except TypeError as error:
            raise TypeError(_fault(self, signature, arguments, options, error)) from None
        bound.apply_defaults()
        init(**bound.arguments)

    checked.other_names = other_names
    return checked


def _expect_one(module, signature, options, name, other):
    """Refuses an option that is given by two names, or by the other one as no number."""
    if name in options:
        raise TypeError(_words(module, signature, f"{name} and {other} are one option: give one"))
    if not isinstance(options[other], (int, float)):
        raise TypeError(_words(module, signature, f"{other}: expected a number, got "
                                                  f"{options[other]!r}"))


def _words(module, signature, fault):
    """The fault, and the module's name with its arguments and their defaults."""
    arguments = [a.replace(annotation=a.empty) for a in signature.parameters.values()]
    shown = signature.replace(parameters=arguments[1:], return_annotation=signature.empty)
    name = type(module).__name__
    return f"{name}: {fault}; expected {name}{shown}"


def _fault(module, signature, arguments, options, error):
    """The fault of arguments that do not bind."""
    known = [*signature.parameters][1:]
    fault = str(error)
    by_place = [name for name in known
                if signature.parameters[name].kind is not inspect.Parameter.KEYWORD_ONLY]
    if len(arguments) > len(by_place):
        fault = f"got {len(arguments)} arguments by place, options have names"
    for name in options:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1, 0)
            fault = f"unknown option '{name}'" + (f", nearest '{near[0]}'" if near else "")
    return _words(module, signature, fault)


def extending(base, **other_names):
    """Makes the constructor of a module that is PyTorch's, or another one of this package, with
    more options: it has the arguments of the constructor `base`, and its own by name."""
    def decorated(init):
        more = [parameter for parameter in inspect.signature(init).parameters.values()
                if parameter.kind is inspect.Parameter.KEYWORD_ONLY]
        known = inspect.signature(base)
        names = {parameter.name for parameter in more}
        init.__signature__ = known.replace(parameters=[
            *(p for p in known.parameters.values()
              if p.name not in names and p.kind is not inspect.Parameter.VAR_KEYWORD), *more])
        return named(init, **other_names)
    return decorated
