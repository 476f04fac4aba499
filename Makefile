# The everyday commands; `make` alone lists them.
SHELL := /bin/sh
PYTHON ?= python3
IN_VENV := .venv/bin/python
# Unit tests see no stack, not even one that runs: this state folder does not exist.
WITHOUT_STACK := HEADRACE_STATE=.headrace/none
# Tests side by side, each with a stack of its own: about 5 GB of memory, and 2 more for Airflow.
WORKERS ?= 2
UV = $$(command -v uv || echo .venv/bin/uv)

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup setup-tests up down status logs restart demo test unit integration e2e lint format lock clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## Install .venv, Java, jars and Postgres where missing
	@$(PYTHON) -m stack.bootstrap

setup-tests:
	@$(PYTHON) -m stack.bootstrap --tests

demo: setup ## Start the stack and run every example feed to its end
	@exec $(IN_VENV) -m stack demo

up: setup ## Start the stack
	@exec $(IN_VENV) -m stack up

down: $(IN_VENV) ## Stop the stack; its data stays
	@exec $(IN_VENV) -m stack down

status: $(IN_VENV) ## Show what each part is doing
	@exec $(IN_VENV) -m stack status

logs: $(IN_VENV) ## Show the logs: make logs PART=kafka FOLLOW=1
	@exec $(IN_VENV) -m stack logs $(PART) $(if $(FOLLOW),-f)

restart: $(IN_VENV) ## Restart the stack, or one part: make restart PART=scheduler
	@exec $(IN_VENV) -m stack restart $(PART)

test: setup-tests lint unit ## Run every check and every test
	@$(IN_VENV) -m pytest -n $(WORKERS) tests/integration tests/e2e

unit: $(IN_VENV) ## Run the tests that need no service
	@$(WITHOUT_STACK) $(IN_VENV) -m pytest tests/unit

integration: $(IN_VENV) ## Run the tests against real services
	@$(IN_VENV) -m pytest tests/integration

e2e: $(IN_VENV) ## Run the whole story, browser included
	@$(IN_VENV) -m pytest tests/e2e

lint: $(IN_VENV) ## Check style, types and imports
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@$(WITHOUT_STACK) .venv/bin/mypy
	@$(WITHOUT_STACK) .venv/bin/lint-imports

format: $(IN_VENV) ## Format the code
	@.venv/bin/ruff check --fix .
	@.venv/bin/ruff format .

lock: ## Compile requirements.txt from pyproject.toml
	@$(UV) pip compile --quiet pyproject.toml --group stack --group dev --generate-hashes --no-emit-index-url \
		--universal --no-strip-extras --custom-compile-command "make lock" -o requirements.txt

# Reached only when .venv is missing.
$(IN_VENV):
	@echo "There is no .venv yet. Type: make setup" >&2; exit 1

clean: ## Stop the stack and remove .venv and all its data
	@if [ -x $(IN_VENV) ] && [ -d .headrace ]; then $(IN_VENV) -m stack down; fi
	@rm -rf .venv .headrace
